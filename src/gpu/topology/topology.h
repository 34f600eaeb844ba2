/*
 * The model of a GPU: the place and the bit in launch descriptors of each TPC.
 *
 * Only this directory knows mask bits. All other code uses logical TPC numbers (tpcset.h).
 *
 * There are two kinds of GPC (facts.md, "Topology"). `gpc` is the GPC of the chip: the TPC shares the GPC's caches and
 * path to memory. `virtual_gpc` is the group in which the block scheduler can place a cluster. A TPC in no group is a
 * singleton: its virtual_gpc is gpc_limit or above, and no other TPC has the same.
 */
#pragma once

#include "base/error.h"
#include "gpu/pci_address.h"
#include "gpu/qmd.h"
#include "gpu/tpcset.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TOPOLOGY_GPUS_MAX 16
#define TOPOLOGY_GPCS_MAX 32
#define TOPOLOGY_NAME_MAX 64
#define TOPOLOGY_UUID_MAX 48      /* at least UUID_TEXT (gpu/pci_address.h) */
#define TOPOLOGY_MASK_BITS 256    /* no QMD version has a wider mask */
#define TOPOLOGY_UNKNOWN UINT16_MAX

struct topology_tpc {
	uint16_t gpc;         /* on the chip, below TOPOLOGY_GPCS_MAX, or TOPOLOGY_UNKNOWN */
	uint16_t virtual_gpc; /* below gpc_limit + TPCSET_MAX, or TOPOLOGY_UNKNOWN, as always before Hopper */
	uint16_t mask_bit;    /* 0 … TOPOLOGY_MASK_BITS - 1, different for each TPC */
};

struct topology {
	struct pci_address pci;
	char name[TOPOLOGY_NAME_MAX]; /* of the product, without control characters; "" if unknown */
	char uuid[TOPOLOGY_UUID_MAX]; /* one word; "" if unknown */
	uint16_t compute_major;       /* compute capability, 9.0 on an H200 */
	uint16_t compute_minor;
	uint16_t sms_per_tpc;         /* 1 or 2 */
	uint16_t gpc_limit;           /* room of the chip for GPCs, 1 or more: P of facts.md, "Mask bits" */
	uint16_t tpc_limit;           /* room of a GPC for TPCs, 1 or more: S of facts.md, "Mask bits" */
	uint16_t tpc_count;           /* present TPCs, with the numbers 0 … tpc_count - 1 */
	struct topology_tpc tpcs[TPCSET_MAX];
};

/* All GPUs of this machine, ordered by PCI address as with CUDA_DEVICE_ORDER=PCI_BUS_ID. */
struct topology_list {
	unsigned int count;
	struct topology gpus[TOPOLOGY_GPUS_MAX];
};

/* The mask bit of a TPC, from the driver's numbers, by the rule of facts.md, "Mask bits". Before Hopper, the bit is the
 * TPC's logical number, and the last two arguments are not used. */
unsigned int topology_mask_bit(const struct topology *gpu, unsigned int tpc, unsigned int virtual_gpc,
                               unsigned int migratable_tpc);

/* The number of SMs in a TPC, by compute capability: 1 below 6.0, in 6.1 and in 6.2, else 2 (facts.md, "Mask
 * bits"). */
unsigned int topology_sms_per_tpc(unsigned int compute_major, unsigned int compute_minor);

/* Checks all promises above. -1 with the first violation. Every topology (from a driver, a file or a measurement) is
 * checked before use. */
int topology_validate(const struct topology *gpu, struct error *error);

/* All TPCs of the GPU; the TPCs of a GPC or virtual GPC, empty for an unknown number. */
struct tpcset topology_all(const struct topology *gpu);
struct tpcset topology_gpc(const struct topology *gpu, unsigned int gpc);
struct tpcset topology_virtual_gpc(const struct topology *gpu, unsigned int virtual_gpc);

/* The members of `set` that can share a cluster with the TPC: in the same virtual GPC, or all members if virtual GPCs
 * are unknown. */
struct tpcset topology_cluster_group(const struct topology *gpu, const struct tpcset *set, unsigned int tpc);

/* 1 + the highest mask bit of a present TPC. */
unsigned int topology_mask_bits(const struct topology *gpu);

/* The disable mask that leaves only `set` enabled: a set bit disables, and the bits without a present TPC are set too.
 * TPC bit n is bit n % 64 of words[n / 64]. Bits from `bits` on, a multiple of 64, are left out. */
void topology_disable_mask(const struct topology *gpu, const struct tpcset *set, uint64_t *words,
                           unsigned int bits);

/* The present TPCs that a disable mask leaves enabled. The mask must have all bits of the GPU. */
struct tpcset topology_enabled(const struct topology *gpu, const uint64_t *words);

const struct topology *topology_find(const struct topology_list *list, struct pci_address pci);
void topology_sort(struct topology_list *list); /* by PCI address */

/* The text format of share/topologies, described in topology-format.md. Reading accepts only a whole file; the reason
 * starts with NAME:LINE. Reading a written list returns an equal list. Writing returns -1 if the stream fails. */
int topology_read(struct topology_list *list, FILE *file, const char *name, struct error *error);
int topology_write(const struct topology_list *list, FILE *file);

/* A list of GPUs as one line, for programs that the command starts or attaches to: in the environment, or as the
 * argument of attaching. Otherwise each program would ask the kernel driver again, which takes time for each GPU
 * (hardware.md, "Topology"). A line is only valid with the same driver version, and has no names, and no GPUs without a
 * UUID. UUIDs identify GPUs: a MIG instance has another UUID than its GPU. */
#define TOPOLOGY_ENVIRONMENT "NVTASKSET_GPUS"

/* Room for any line, with its NUL. */
#define TOPOLOGY_ENVIRONMENT_MAX (64 + TOPOLOGY_GPUS_MAX * (256 + TPCSET_MAX * 24))

/* Returns `text`, empty if there is nothing to pass on. `root` is put before /sys; "" except in tests. */
const char *topology_environment_write(const char *root, const struct topology_list *list,
                                       char text[TOPOLOGY_ENVIRONMENT_MAX]);

/* Reads a whole line. -1 for a line of another driver version, or an invalid line. */
int topology_environment_read(const char *root, const char *text, struct topology_list *list);

/* The file in NVTASKSET_TOPOLOGY; NULL if the variable is not set, or empty. */
const char *topology_named_file(void);

/* Loads the GPUs of this machine from the first source with GPUs: the file of topology_named_file; the kernel driver;
 * the cache of `nvtaskset measure` (cache.h). -1 with the reason, also without a GPU. */
int topology_load(struct topology_list *list, struct error *error);

/* The same, but takes the kernel driver's last answer while the answer holds (kept.h). A GPU in MIG mode is not refused
 * then: the library in a program sees another UUID, and asks. */
int topology_load_kept(struct topology_list *list, struct error *error);

/* As topology_load, but asks the kernel driver only for the wanted GPUs, since each GPU takes time; the list may have
 * more GPUs. NULL wants all. */
struct topology_wanted {
	unsigned int count;
	struct pci_address gpus[TOPOLOGY_GPUS_MAX];
};
int topology_load_wanted(const struct topology_wanted *wanted, struct topology_list *list, struct error *error);

/* Whether the GPU is wanted. NULL wants all. */
bool topology_wants(const struct topology_wanted *wanted, struct pci_address pci);

/* Uses only the first two sources: a measurement can be compared with the result. */
int topology_load_file_or_driver(const struct topology_wanted *wanted, struct topology_list *list, struct error *error);

/* Asks the kernel driver for the wanted GPUs, or for all (NULL), without root, CUDA or a kernel module of ours
 * (facts.md, "Topology"). In rm.c. -1 with the reason; TOPOLOGY_REFUSED, also below 0, if the driver answers that its
 * GPUs cannot be partitioned (MIG). */
#define TOPOLOGY_REFUSED (-2)
int topology_load_rm(const struct topology_wanted *wanted, struct topology_list *list, struct error *error);

/* Asks the kernel driver for the memory of a GPU, in bytes: the free memory, and the memory of each process; 0 for a
 * process of which the kernel driver does not tell. For one process or for many, the question takes as long
 * (hardware.md, "Memory"). False without an answer. In rm.c. */
#define TOPOLOGY_USERS_MAX 200 /* in one question */
struct topology_user {
	pid_t pid;
	uint64_t bytes;
};
bool topology_read_memory(struct pci_address pci, struct topology_user *users, unsigned int count,
                          uint64_t *free_bytes);

/* --- occupancy.c -------------------------------------------------------------------------------------------------- */

/*
 * The TPCs for a launch whose blocks must run at once: a cluster, or a cooperative grid. Computed from the GPU's
 * topology and the number of blocks per SM, without calling the driver.
 */

struct occupancy {
	const struct topology *topology;
	struct qmd_shape shape;
	unsigned int blocks_per_sm; /* 1 or more */
	struct tpcset possible;     /* TPCs on which the blocks can run at all */
};

/* `judged`: the TPCs on which the driver thinks that the launch can run, for topologies with unknown virtual GPCs. */
struct occupancy occupancy_of(const struct topology *topology, const struct qmd_shape *shape,
                              unsigned int blocks_per_sm, const struct tpcset *judged);

/* Whether the set has room for all blocks that must run at once. */
bool occupancy_fits(const struct occupancy *need, const struct tpcset *set);

/* The TPCs for the launch: the TPCs of `allowed` in `preferred`, if there is room; otherwise all usable TPCs of
 * `allowed`. If there is no room either, whole groups beyond `allowed` are added: for a cluster, all groups with a part
 * in `allowed`; then group by group, each time the group with the fewest missing TPCs. */
struct tpcset occupancy_find_room(const struct occupancy *need, const struct tpcset *allowed,
                                  const struct tpcset *preferred);
