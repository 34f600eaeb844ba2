/*
 * nvtaskset for programs: which TPCs of an NVIDIA GPU a process may use, read and changed while it runs.
 *
 *   cc scheduler.c $(pkg-config --cflags --libs nvtaskset)
 *
 * A process has a partition, for each GPU a set of TPCs, if it was started by nvtaskset(1) or came to it by --attach.
 * Who may change it is the kernel's decision: the process's user, and root. The next kernel that it launches obeys.
 *
 * TPCs have the numbers that software sees, SM id / SMs of a TPC. GPUs have numbers from 0 on in the order of their PCI
 * addresses: CUDA's with CUDA_DEVICE_ORDER=PCI_BUS_ID, whatever CUDA_VISIBLE_DEVICES says.
 *
 * Functions that can fail return 0, or -1 and leave in `error`, which may be NULL, the reason as one line and as a code. What
 * they were to write is then as it was. Nothing here prints, exits, starts a thread or handles a signal.
 *
 * Threads: a topology may be used by several at once. A partition, the handle, belongs to one thread at a time; several
 * handles to the same process may be used at once, by threads and by programs: their changes exclude each other. After a
 * fork, the child opens handles of its own.
 *
 * What is exported here stays: members are added only at the end of structs with a `size`, by which a later library knows
 * which of them the caller has, and symbols have versions. A size that no version known to the library has is refused.
 */
#ifndef NVTASKSET_H
#define NVTASKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Of the library that is in use, "0.1.0". */
const char *nvtaskset_version(void);

/* What failed: a program acts otherwise on each. Numbers stay what they are; later versions may add some. */
enum nvtaskset_error_code {
	NVTASKSET_ERROR_OTHER = 0,         /* none of these: the reason says more */
	NVTASKSET_ERROR_INVALID = 1,       /* an argument that is wrong on any machine, an empty set for example */
	NVTASKSET_ERROR_ENDED = 2,         /* the process has ended, or there is none with this pid */
	NVTASKSET_ERROR_STALE = 3,         /* the process has another partition by now: open it again */
	NVTASKSET_ERROR_NOT_PERMITTED = 4, /* that is for the process's user and root; or a file is not for the caller */
	NVTASKSET_ERROR_NO_CUDA = 5,       /* the process has not loaded CUDA, perhaps not yet */
	NVTASKSET_ERROR_NO_PARTITION = 6,  /* it uses CUDA and has no partition: nvtaskset --attach gives it one */
	NVTASKSET_ERROR_NOT_IN_FORCE = 7,  /* it does not obey its partition now, because of a profiler for example */
	NVTASKSET_ERROR_OUT_OF_REACH = 8,  /* it obeys, but has closed its partition's file: until its next CUDA context */
	NVTASKSET_ERROR_NOT_KNOWN = 9,     /* no such GPU or TPC is here; or what GPUs are here cannot be found out */
	NVTASKSET_ERROR_DAMAGED = 10,      /* what the process has is no partition, or one of another version */
	NVTASKSET_ERROR_BUSY = 11,         /* somebody else is changing the partition: try again */
	NVTASKSET_ERROR_NO_ROOM = 12,      /* not so many TPCs are free; or the partition has no place for one more GPU */
	NVTASKSET_ERROR_NO_MEMORY = 13,    /* the calling program gets no more */
	NVTASKSET_ERROR_SYSTEM = 14,       /* the kernel refuses something else: see system_error */
	NVTASKSET_ERROR_SHARED = 15        /* the process has its parent's partition, and none of its own until it loads CUDA */
};

/* 320 bytes, as always: programs that were built when all of them were the reason find it where it was. */
struct nvtaskset_error {
	char reason[312]; /* one line, without newline and full stop */
	int code;         /* enum nvtaskset_error_code */
	int system_error; /* errno, where it was the kernel that refused; else 0 */
};

/* --- sets of TPCs ------------------------------------------------------------------------------------------------- */

#define NVTASKSET_TPCS_MAX 256 /* no GPU has more */

/* Starts with all zero: empty. */
struct nvtaskset_set {
	uint64_t words[NVTASKSET_TPCS_MAX / 64]; /* TPC n is bit n % 64 of words[n / 64] */
};

/* A number that is not below NVTASKSET_TPCS_MAX is never a member, and adding it does nothing. */
void nvtaskset_set_add(struct nvtaskset_set *set, unsigned int tpc);
void nvtaskset_set_add_range(struct nvtaskset_set *set, unsigned int first, unsigned int last);
void nvtaskset_set_remove(struct nvtaskset_set *set, unsigned int tpc);
bool nvtaskset_set_has(const struct nvtaskset_set *set, unsigned int tpc);
bool nvtaskset_set_equal(const struct nvtaskset_set *a, const struct nvtaskset_set *b);
unsigned int nvtaskset_set_count(const struct nvtaskset_set *set);

/* The smallest member that is not below `from`, or NVTASKSET_TPCS_MAX. */
unsigned int nvtaskset_set_next(const struct nvtaskset_set *set, unsigned int from);

struct nvtaskset_set nvtaskset_set_and(const struct nvtaskset_set *a, const struct nvtaskset_set *b);
struct nvtaskset_set nvtaskset_set_or(const struct nvtaskset_set *a, const struct nvtaskset_set *b);
struct nvtaskset_set nvtaskset_set_without(const struct nvtaskset_set *a, const struct nvtaskset_set *b);

/* The command's two notations, a list ("0-9,12,20-30:2") and a hexadecimal mask ("3ff", "0x3ff"). Members are below
 * `limit`: a GPU's tpc_count, or NVTASKSET_TPCS_MAX. */
int nvtaskset_set_parse_list(struct nvtaskset_set *set, const char *text, unsigned int limit,
                             struct nvtaskset_error *error);
int nvtaskset_set_parse_mask(struct nvtaskset_set *set, const char *text, unsigned int limit,
                             struct nvtaskset_error *error);

#define NVTASKSET_SET_TEXT 1024 /* room for any set in either notation */

/* Return `text`. The empty set is "" as a list and "0" as a mask. */
const char *nvtaskset_set_format_list(const struct nvtaskset_set *set, char text[NVTASKSET_SET_TEXT]);
const char *nvtaskset_set_format_mask(const struct nvtaskset_set *set, char text[NVTASKSET_SET_TEXT]);

/* --- GPUs ----------------------------------------------------------------------------------------------------------- */

/* The GPUs of this machine, as they were when it was loaded. */
struct nvtaskset_topology;

/* Asks the kernel driver, without CUDA; or reads the file that NVTASKSET_TOPOLOGY names, or what `nvtaskset measure`
 * has found. Takes milliseconds: once for a program. -1 where no GPU is to be found, too. */
int nvtaskset_topology_load(struct nvtaskset_topology **topology, struct nvtaskset_error *error);

/* After the partitions that were opened with it. NULL does nothing. */
void nvtaskset_topology_free(struct nvtaskset_topology *topology);

unsigned int nvtaskset_topology_gpu_count(const struct nvtaskset_topology *topology);

/* The GPU with this PCI address ("0000:3b:00.0") or UUID ("GPU-…"). */
int nvtaskset_topology_find_gpu(const struct nvtaskset_topology *topology, const char *name, unsigned int *gpu,
                                struct nvtaskset_error *error);

struct nvtaskset_gpu {
	size_t size;      /* set by the caller: sizeof(struct nvtaskset_gpu) */
	char bus_id[32];  /* "0000:3b:00.0" */
	char name[64];    /* the product's; "" where unknown */
	char uuid[48];    /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; "" where unknown */
	unsigned int compute_major, compute_minor; /* its compute capability */
	unsigned int tpc_count;   /* they are numbered from 0 on */
	unsigned int sms_per_tpc; /* 1 or 2 */
	unsigned int gpc_limit;   /* the numbers of GPCs are below; some may be missing */
};

int nvtaskset_gpu_describe(const struct nvtaskset_topology *topology, unsigned int gpu,
                           struct nvtaskset_gpu *description, struct nvtaskset_error *error);

/* The GPC of the chip that a TPC lies in: its TPCs share caches and a path to memory. -1 where unknown, and where there
 * is no such TPC. */
int nvtaskset_gpu_gpc_of(const struct nvtaskset_topology *topology, unsigned int gpu, unsigned int tpc);

/* The group of TPCs that can hold one cluster of thread blocks. One that is gpc_limit or above has this TPC alone. -1
 * where unknown, before Hopper, and where there is no such TPC. */
int nvtaskset_gpu_virtual_gpc_of(const struct nvtaskset_topology *topology, unsigned int gpu, unsigned int tpc);

/* All TPCs of a GPU; those of one GPC or group. Empty where it has none. */
struct nvtaskset_set nvtaskset_gpu_tpcs(const struct nvtaskset_topology *topology, unsigned int gpu);
struct nvtaskset_set nvtaskset_gpu_tpcs_of_gpc(const struct nvtaskset_topology *topology, unsigned int gpu,
                                               unsigned int gpc);
struct nvtaskset_set nvtaskset_gpu_tpcs_of_virtual_gpc(const struct nvtaskset_topology *topology, unsigned int gpu,
                                                       unsigned int virtual_gpc);

enum nvtaskset_strategy {
	NVTASKSET_PACKED,     /* whole GPCs first: they share caches with nobody else then */
	NVTASKSET_DISTRIBUTED /* evenly over the GPCs: the most memory bandwidth and cache for each TPC */
};

/* Chooses `count` TPCs, none of them in `used` (NULL: none is). The same question has the same answer. */
int nvtaskset_gpu_choose(const struct nvtaskset_topology *topology, unsigned int gpu, const struct nvtaskset_set *used,
                         unsigned int count, enum nvtaskset_strategy strategy, struct nvtaskset_set *chosen,
                         struct nvtaskset_error *error);

/* --- processes -------------------------------------------------------------------------------------------------------- */

/* The processes with a partition that the caller may change, by rising pid: writes as many as there is room for, and
 * says how many there are. */
int nvtaskset_processes(pid_t *pids, size_t room, size_t *count, struct nvtaskset_error *error);

/* The partition of a process, whichever programs it runs. A handle never comes to mean another process that has
 * got the pid. It has two descriptors, close-on-exec, and a page or two of memory. */
struct nvtaskset_partition;

/* The process may be the caller itself. `topology` must stay until the handle is closed. */
int nvtaskset_partition_open(struct nvtaskset_partition **partition, const struct nvtaskset_topology *topology,
                             pid_t pid, struct nvtaskset_error *error);

/* NULL does nothing. */
void nvtaskset_partition_close(struct nvtaskset_partition *partition);

/* The TPCs of a GPU that the process may use. All of them where its partition does not speak of this GPU; none where that
 * names only what the GPU lacks, which the process ignores. */
int nvtaskset_partition_get(struct nvtaskset_partition *partition, unsigned int gpu, struct nvtaskset_set *set,
                            struct nvtaskset_error *error);

/* Changes them: the next launch obeys, and other GPUs keep theirs. Takes less than a microsecond, of which most is the
 * kernel's: the lock against others that change the same partition. While one of those is stopped in the middle it waits
 * for two seconds at most, and then fails (BUSY); one that dies leaves the old set in force. A set that is empty, or has TPCs
 * that the GPU lacks, is refused. That the process has ended is not seen here: see nvtaskset_partition_check. */
int nvtaskset_partition_set(struct nvtaskset_partition *partition, unsigned int gpu, const struct nvtaskset_set *set,
                            struct nvtaskset_error *error);

/* 0 while the process runs, and what is set here is in force, or will be once it uses CUDA; also when it runs another program
 * by now. -1 with the reason: it has ended (ENDED); it has another partition (STALE), by an nvtaskset of its own for example,
 * or none; or it does not obey now, because of a profiler for example (NOT_IN_FORCE). Takes some dozens of microseconds. */
int nvtaskset_partition_check(struct nvtaskset_partition *partition, struct nvtaskset_error *error);

/* A descriptor for poll(2) and the like, readable when the process has ended; the handle's, not to be closed. -1 where the
 * kernel has no such thing: before Linux 5.3. */
int nvtaskset_partition_descriptor(const struct nvtaskset_partition *partition);

/* Why launches were not simply run inside the partition: numbers below. */
#define NVTASKSET_REASONS_MAX 16

struct nvtaskset_counters {
	size_t size;           /* set by the caller: sizeof(struct nvtaskset_counters) */
	/* Kernels as they are uploaded: one that is launched by itself at each launch; one in a CUDA graph when the graph is
	 * launched for the first time or has to follow a changed partition, and not at the launches in between. */
	uint64_t restricted;   /* kept inside the partition */
	uint64_t unrestricted; /* as they came */
	uint64_t refreshed;    /* nodes of CUDA graphs that were uploaded again after a change */
	uint64_t reasons[NVTASKSET_REASONS_MAX]; /* events, by nvtaskset_reason_text */
};

/* They only rise; the process writes them, and can write what it likes. */
int nvtaskset_partition_counters(struct nvtaskset_partition *partition, struct nvtaskset_counters *counters,
                                 struct nvtaskset_error *error);

/* A reason in words; NULL where this version has no such reason. */
const char *nvtaskset_reason_text(unsigned int reason);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
