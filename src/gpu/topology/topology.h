/*
 * The model of a GPU: its TPCs. Where each lies, and which bit of a launch descriptor stands for it.
 *
 * This directory alone knows mask bits. Everybody else speaks of logical TPC numbers (tpcset.h).
 *
 * Two notions of GPC (docs/facts.md, "Topology"): `gpc` is where the TPC lies on the chip: it shares that GPC's caches
 * and its path to memory. `virtual_gpc` is the group in which the block scheduler can place one cluster.
 * A TPC in no group is a singleton: its virtual_gpc is the topology's gpc_limit or above, and unique.
 */
#ifndef NVTASKSET_TOPOLOGY_H
#define NVTASKSET_TOPOLOGY_H

#include "base/error.h"
#include "gpu/pci_address.h"
#include "gpu/tpcset.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TOPOLOGY_GPUS_MAX 16
#define TOPOLOGY_GPCS_MAX 32
#define TOPOLOGY_NAME_MAX 64
#define TOPOLOGY_UUID_MAX 48      /* UUID_TEXT (gpu/uuid.h), and some more */
#define TOPOLOGY_MASK_BITS 256    /* no QMD version has a wider mask */
#define TOPOLOGY_UNKNOWN UINT16_MAX

struct topology_tpc {
	uint16_t gpc;         /* on the chip, below TOPOLOGY_GPCS_MAX; TOPOLOGY_UNKNOWN where untold */
	uint16_t virtual_gpc; /* below gpc_limit + TPCSET_MAX; TOPOLOGY_UNKNOWN likewise, and before Hopper */
	uint16_t mask_bit;    /* 0 … TOPOLOGY_MASK_BITS - 1, no two alike */
};

struct topology {
	struct pci_address pci;
	char name[TOPOLOGY_NAME_MAX]; /* the product's, without control characters; "" where unknown */
	char uuid[TOPOLOGY_UUID_MAX]; /* one word; "" where unknown */
	uint16_t compute_major;       /* compute capability, 9.0 on an H200 */
	uint16_t compute_minor;
	uint16_t sms_per_tpc;         /* 1 or 2 */
	uint16_t gpc_limit;           /* GPCs that the chip has room for, 1 or more: P of docs/facts.md, "Mask bits" */
	uint16_t tpc_limit;           /* TPCs that a GPC has room for, 1 or more: S of docs/facts.md, "Mask bits" */
	uint16_t tpc_count;           /* present TPCs; they are numbered 0 … tpc_count - 1 */
	struct topology_tpc tpcs[TPCSET_MAX];
};

/* All the GPUs of this machine, ordered by PCI address as with CUDA_DEVICE_ORDER=PCI_BUS_ID. */
struct topology_list {
	unsigned int count;
	struct topology gpus[TOPOLOGY_GPUS_MAX];
};

/* The mask bit of a TPC from the driver's answer: the rule of docs/facts.md, "Mask bits". Before Hopper it is the TPC's
 * logical number, and the other arguments do not matter. */
unsigned int topology_mask_bit(const struct topology *gpu, unsigned int tpc, unsigned int virtual_gpc,
                               unsigned int migratable_tpc);

/* SMs of a TPC, by compute capability: 1 below 6.0, in 6.1 and in 6.2, else 2 (docs/facts.md, "Mask bits"). */
unsigned int topology_sms_per_tpc(unsigned int compute_major, unsigned int compute_minor);

/* Whether every promise above holds; the reason names the first that does not. Whatever made a
 * topology (a driver, a file, a measurement) is checked by this before anybody uses it. */
int topology_validate(const struct topology *gpu, struct error *error);

/* All TPCs of the GPU; those of one GPC (empty where it has none). */
struct tpcset topology_all(const struct topology *gpu);
struct tpcset topology_gpc(const struct topology *gpu, unsigned int gpc);
struct tpcset topology_virtual_gpc(const struct topology *gpu, unsigned int virtual_gpc);

/* The members of `set` that can share a cluster with this TPC: those of its virtual GPC; all where these are not known. */
struct tpcset topology_cluster_group(const struct topology *gpu, const struct tpcset *set, unsigned int tpc);

/* One more than the highest mask bit that stands for a present TPC. */
unsigned int topology_mask_bits(const struct topology *gpu);

/* The disable mask that leaves just `set` enabled: a set bit disables, and bits that stand for no present TPC
 * are set too. TPC bit n is bit n % 64 of words[n / 64]; bits from `bits` on (a multiple of 64) are left out. */
void topology_disable_mask(const struct topology *gpu, const struct tpcset *set, uint64_t *words,
                           unsigned int bits);

/* The present TPCs that such a mask, of as many bits as the GPU's, leaves enabled. */
struct tpcset topology_enabled(const struct topology *gpu, const uint64_t *words);

const struct topology *topology_find(const struct topology_list *list, struct pci_address pci);
void topology_sort(struct topology_list *list); /* by PCI address */

/* The text format of share/topologies, described in docs/topology-format.md. Reading takes a whole file
 * or nothing; the reason starts with NAME:LINE. What was written reads back equal. */
int topology_read(struct topology_list *list, FILE *file, const char *name, struct error *error);
int topology_write(const struct topology_list *list, FILE *file);

/* The file that NVTASKSET_TOPOLOGY names; NULL where it is not set, or empty. */
const char *topology_named_file(void);

/* The GPUs of this machine, from whoever knows them, in this order: the file that NVTASKSET_TOPOLOGY names, where it
 * is set and not empty; the kernel driver; what `nvtaskset measure` left in the cache (cache.h), with the GPCs
 * that nvdebug tells, where it is loaded (nvdebug.h); nvdebug alone. No GPU at all is a failure with its reason. */
int topology_load(struct topology_list *list, struct error *error);

/* The same, with at least these GPUs where they are there: the kernel driver is asked for no others, since each takes time.
 * NULL stands for all. */
struct topology_wanted {
	unsigned int count;
	struct pci_address gpus[TOPOLOGY_GPUS_MAX];
};
int topology_load_wanted(const struct topology_wanted *wanted, struct topology_list *list, struct error *error);

/* Whether it is among them: NULL has all. */
bool topology_wants(const struct topology_wanted *wanted, struct pci_address pci);

/* The first two only: what a measurement can be compared with. */
int topology_load_told(struct topology_list *list, struct error *error);

/* Asks the kernel driver, without root, CUDA or a module of ours (docs/facts.md, "Topology"), for these GPUs alone, or
 * for all (NULL). In rm.c. -1 with the reason; TOPOLOGY_REFUSED, which is below 0 too, where it was asked and says that
 * its GPUs are of no use to us (MIG). */
#define TOPOLOGY_REFUSED (-2)
int topology_load_rm(const struct topology_wanted *wanted, struct topology_list *list, struct error *error);

#endif
