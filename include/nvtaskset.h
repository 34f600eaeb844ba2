/*
 * nvtaskset for programs: reads and changes which TPCs of an NVIDIA GPU a process may use, while the process runs, and
 * tells how the process uses the GPU.
 *
 *   cc scheduler.c $(pkg-config --cflags --libs nvtaskset)
 *
 * A process has a partition, a set of TPCs for each GPU, if it was started by nvtaskset(1) or got one by nvtaskset
 * --attach. The process's user and root may change the partition; the kernel enforces that. The next launch of the
 * process obeys the change.
 *
 * A TPC's number is the one that software sees: SM id / SMs per TPC. GPUs are numbered from 0 on, in the order of their
 * PCI addresses. CUDA uses the same numbers with CUDA_DEVICE_ORDER=PCI_BUS_ID and without CUDA_VISIBLE_DEVICES.
 *
 * Functions that can fail return 0 or -1. After -1, `error` has the reason, as one line and as a code, and other output
 * is unchanged. `error` may be NULL. Nothing here prints, exits, starts a thread or handles a signal.
 *
 * Threads: several threads may use a topology at once. A handle of a partition, a group or a watcher belongs to one
 * thread at a time. Several handles for the same process may be used at once, in one program or in several: changes
 * exclude each other. After a fork, the child must open its own handles.
 *
 * Compatibility: symbols have versions. New members come only at the end of structs with a `size`, by which a later
 * library knows the caller's version of the struct. A size unknown to the library is an error.
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

/* The version of the library in use: "0.1.0". */
const char *nvtaskset_version(void);

/* Kinds of errors, for programs to act on. Numbers never change; later versions may add some. */
enum nvtaskset_error_code {
	NVTASKSET_ERROR_OTHER = 0,         /* any other error: see the reason */
	NVTASKSET_ERROR_INVALID = 1,       /* an argument that is wrong on any machine, as an empty set */
	NVTASKSET_ERROR_ENDED = 2,         /* the process has ended, or no process has this pid */
	NVTASKSET_ERROR_STALE = 3,         /* the process has a new partition: open it again */
	NVTASKSET_ERROR_NOT_PERMITTED = 4, /* only for the process's user and root; or a file may not be read */
	NVTASKSET_ERROR_NO_CUDA = 5,       /* the process has not loaded CUDA, or not yet */
	NVTASKSET_ERROR_NO_PARTITION = 6,  /* the process uses CUDA without a partition: nvtaskset --attach gives one */
	NVTASKSET_ERROR_NOT_IN_FORCE = 7,  /* the process does not obey now, for example because of a profiler */
	NVTASKSET_ERROR_OUT_OF_REACH = 8,  /* obeys, but closed the partition's file: retry after its next context */
	NVTASKSET_ERROR_NOT_KNOWN = 9,     /* no GPU or TPC with the number; or no GPU of this machine is known */
	NVTASKSET_ERROR_DAMAGED = 10,      /* the process's partition is damaged, or of another version */
	NVTASKSET_ERROR_BUSY = 11,         /* another program is changing the partition now: try again */
	NVTASKSET_ERROR_NO_ROOM = 12,      /* too few TPCs are free; or the partition has no room for one more GPU */
	NVTASKSET_ERROR_NO_MEMORY = 13,    /* the calling program is out of memory */
	NVTASKSET_ERROR_SYSTEM = 14,       /* the kernel refused something else: see system_error */
	NVTASKSET_ERROR_SHARED = 15        /* no partition of its own yet: shares an ancestor's until CUDA is loaded */
};

/* Always 320 bytes. In early versions, all 320 were the reason, which still begins at the same place. */
struct nvtaskset_error {
	char reason[312]; /* one line, without newline or full stop */
	int code;         /* enum nvtaskset_error_code */
	int system_error; /* errno if the kernel refused; otherwise 0 */
};

/* --- sets of TPCs ------------------------------------------------------------------------------------------------- */

#define NVTASKSET_TPCS_MAX 256 /* no GPU has more */

/* All zero is the empty set. */
struct nvtaskset_set {
	uint64_t words[NVTASKSET_TPCS_MAX / 64]; /* TPC n is bit n % 64 of words[n / 64] */
};

/* A number of NVTASKSET_TPCS_MAX or above is never a member, and adding the number does nothing. A range includes both
 * `first` and `last`. */
void nvtaskset_set_add(struct nvtaskset_set *set, unsigned int tpc);
void nvtaskset_set_add_range(struct nvtaskset_set *set, unsigned int first, unsigned int last);
void nvtaskset_set_remove(struct nvtaskset_set *set, unsigned int tpc);
bool nvtaskset_set_has(const struct nvtaskset_set *set, unsigned int tpc);
bool nvtaskset_set_equal(const struct nvtaskset_set *a, const struct nvtaskset_set *b);
unsigned int nvtaskset_set_count(const struct nvtaskset_set *set);

/* The smallest member from `from` on; NVTASKSET_TPCS_MAX if there is none. */
unsigned int nvtaskset_set_next(const struct nvtaskset_set *set, unsigned int from);

struct nvtaskset_set nvtaskset_set_and(const struct nvtaskset_set *a, const struct nvtaskset_set *b);
struct nvtaskset_set nvtaskset_set_or(const struct nvtaskset_set *a, const struct nvtaskset_set *b);
struct nvtaskset_set nvtaskset_set_without(const struct nvtaskset_set *a, const struct nvtaskset_set *b);

/* Reads the command's two notations: a list ("0-9,12,20-30:2") and a hexadecimal mask ("3ff", "0x3ff"). Members must be
 * below `limit`, which is 1 to NVTASKSET_TPCS_MAX, for example a GPU's tpc_count. The mask "0" is the empty set; an
 * empty list is an error. Any wrong text is INVALID, and leaves `set` unchanged. */
int nvtaskset_set_parse_list(struct nvtaskset_set *set, const char *text, unsigned int limit,
                             struct nvtaskset_error *error);
int nvtaskset_set_parse_mask(struct nvtaskset_set *set, const char *text, unsigned int limit,
                             struct nvtaskset_error *error);

#define NVTASKSET_SET_TEXT 1024 /* room for any set in either notation */

/* Return `text`. The empty set is "" as a list and "0" as a mask. */
const char *nvtaskset_set_format_list(const struct nvtaskset_set *set, char text[NVTASKSET_SET_TEXT]);
const char *nvtaskset_set_format_mask(const struct nvtaskset_set *set, char text[NVTASKSET_SET_TEXT]);

/* --- GPUs --------------------------------------------------------------------------------------------------------- */

/* The GPUs of this machine at the time of nvtaskset_topology_load. Functions with a number `gpu` of gpu_count or above
 * fail (NOT_KNOWN), or return -1 or the empty set. */
struct nvtaskset_topology;

/* Asks the kernel driver, without CUDA; or reads the file in NVTASKSET_TOPOLOGY, or the results of `nvtaskset measure`.
 * Takes milliseconds; once in a program is enough. Finding no GPU is an error. */
int nvtaskset_topology_load(struct nvtaskset_topology **topology, struct nvtaskset_error *error);

/* First close all partitions, groups and watchers opened with the topology. NULL does nothing. */
void nvtaskset_topology_free(struct nvtaskset_topology *topology);

unsigned int nvtaskset_topology_gpu_count(const struct nvtaskset_topology *topology);

/* The GPU with the PCI address ("0000:3b:00.0") or UUID ("GPU-…"). */
int nvtaskset_topology_find_gpu(const struct nvtaskset_topology *topology, const char *name, unsigned int *gpu,
                                struct nvtaskset_error *error);

struct nvtaskset_gpu {
	size_t size;      /* set by the caller: sizeof(struct nvtaskset_gpu) */
	char bus_id[32];  /* "0000:3b:00.0" */
	char name[64];    /* product name; "" if unknown */
	char uuid[48];    /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; "" if unknown */
	unsigned int compute_major, compute_minor; /* compute capability */
	unsigned int tpc_count;   /* TPCs are 0 to tpc_count - 1 */
	unsigned int sms_per_tpc; /* 1 or 2 */
	unsigned int gpc_limit;   /* the chip's room for GPCs: see nvtaskset_gpu_virtual_gpc_of */
};

int nvtaskset_gpu_describe(const struct nvtaskset_topology *topology, unsigned int gpu,
                           struct nvtaskset_gpu *description, struct nvtaskset_error *error);

/* The GPC of the chip with the TPC, 0 to 31: its TPCs share caches and a path to memory. -1: unknown, or no such
 * TPC. */
int nvtaskset_gpu_gpc_of(const struct nvtaskset_topology *topology, unsigned int gpu, unsigned int tpc);

/* The virtual GPC of a TPC: a cluster of thread blocks runs within one virtual GPC. A virtual GPC with a number of
 * gpc_limit or above has a single TPC; numbers are below gpc_limit + NVTASKSET_TPCS_MAX. -1 if unknown, before Hopper,
 * or if the TPC does not exist. */
int nvtaskset_gpu_virtual_gpc_of(const struct nvtaskset_topology *topology, unsigned int gpu, unsigned int tpc);

/* All TPCs of a GPU; of one GPC; of one virtual GPC. The empty set if there is no such GPU, GPC or virtual GPC, or if
 * GPCs are unknown. */
struct nvtaskset_set nvtaskset_gpu_tpcs(const struct nvtaskset_topology *topology, unsigned int gpu);
struct nvtaskset_set nvtaskset_gpu_tpcs_of_gpc(const struct nvtaskset_topology *topology, unsigned int gpu,
                                               unsigned int gpc);
struct nvtaskset_set nvtaskset_gpu_tpcs_of_virtual_gpc(const struct nvtaskset_topology *topology, unsigned int gpu,
                                                       unsigned int virtual_gpc);

enum nvtaskset_strategy {
	NVTASKSET_PACKED,     /* whole GPCs first: no other program uses the caches there */
	NVTASKSET_DISTRIBUTED /* over many GPCs, in chunks for a cluster of 8 blocks: nvtaskset -n's default */
};

/* Chooses `count` TPCs outside of `used` (NULL: the empty set). The same arguments give the same result. NO_ROOM if too
 * few TPCs are left; INVALID for 0 TPCs. */
int nvtaskset_gpu_choose(const struct nvtaskset_topology *topology, unsigned int gpu, const struct nvtaskset_set *used,
                         unsigned int count, enum nvtaskset_strategy strategy, struct nvtaskset_set *chosen,
                         struct nvtaskset_error *error);

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* A group of processes with one partition: nvtaskset(1), --group. A manager of jobs gives each job a group with a file:
 * makes the file, claims TPCs for the group, starts the job's programs with the file's path in NVTASKSET_GROUP_FILE,
 * and removes the file after the programs have ended. The topology must stay until the group is closed. */
struct nvtaskset_group;

/* Makes the file of a group; or opens an existing file, which keeps its content. The file's name, the last part of the
 * absolute path, is the group's: letters, digits and ._:@+-, at most 63, and not a number alone. Only root and the
 * caller may be able to write to the directory. `cgroup` is the job's control group, as in /proc/PID/cgroup
 * ("/system.slice/job_7"); NULL: no control group. By `cgroup`, the next `nvtaskset -p` (not nvtaskset_group_set) also
 * reaches programs of the job that have lost their environment and their descriptors. A killed caller leaves the whole
 * file or no file. */
int nvtaskset_group_make(struct nvtaskset_group **group, const struct nvtaskset_topology *topology, const char *path,
                         const char *cgroup, struct nvtaskset_error *error);

/* Opens the group of an existing file; of a process in a group. */
int nvtaskset_group_open(struct nvtaskset_group **group, const struct nvtaskset_topology *topology, const char *path,
                         struct nvtaskset_error *error);
int nvtaskset_group_of(struct nvtaskset_group **group, const struct nvtaskset_topology *topology, pid_t pid,
                       struct nvtaskset_error *error);

/* NULL does nothing. */
void nvtaskset_group_close(struct nvtaskset_group *group);

/* Removes the file of a group, and so gives the group's TPCs back; an absent file is no failure. Programs that still
 * run keep their TPCs, so end the programs first. */
int nvtaskset_group_remove(const char *path, struct nvtaskset_error *error);

/* The name, in `name`; "": the group has no name. */
#define NVTASKSET_GROUP_NAME 64
const char *nvtaskset_group_name(const struct nvtaskset_group *group, char name[NVTASKSET_GROUP_NAME]);

/* The TPCs of a GPU that the group may use: all, if the group says nothing about the GPU. */
int nvtaskset_group_get(const struct nvtaskset_group *group, unsigned int gpu, struct nvtaskset_set *set,
                        struct nvtaskset_error *error);

/* Sets the TPCs of the group, for all processes now and later; other GPUs stay unchanged. The next launch of each
 * process obeys. Does not ask whether another group has the TPCs. Errors are as for nvtaskset_partition_set. */
int nvtaskset_group_set(struct nvtaskset_group *group, unsigned int gpu, const struct nvtaskset_set *set,
                        struct nvtaskset_error *error);

struct nvtaskset_claim {
	unsigned int gpu;
	unsigned int count; /* of TPCs */
};

/* Chooses TPCs and gives them to the group: on all GPUs of the claims, or on none. No other group with a file in the
 * same directory has the TPCs, whether the group's processes can be seen or not. Where the group was given TPCs of a
 * GPU before, the claim changes nothing if they are `count`, so that a claim can be repeated; any other number is an
 * error (INVALID), and so is a `count` of 0. Fails if too few TPCs are free (NO_ROOM). Waits a bounded time while
 * another process claims in the directory (BUSY). Only for a group opened by its path, with the file still there. */
int nvtaskset_group_claim(struct nvtaskset_group *group, const struct nvtaskset_claim *claims, size_t count,
                          enum nvtaskset_strategy strategy, struct nvtaskset_error *error);

/* --- processes ---------------------------------------------------------------------------------------------------- */

/* Finds the processes with a partition that the caller may change. Writes at most `room` pids, in rising order, and the
 * number of all to `count`. Misses a process that had a limit of 237 open files or fewer at the start, and has more
 * now. */
int nvtaskset_processes(pid_t *pids, size_t room, size_t *count, struct nvtaskset_error *error);

/* A handle for the partition of a process, also after the process has executed another program. A later process with
 * the same pid is never mistaken for it. A handle uses two descriptors, close-on-exec, and 48 KiB of memory; 96 KiB for
 * a member of a group. */
struct nvtaskset_partition;

/* The process may be the caller itself. `topology` must stay until the handle is closed. */
int nvtaskset_partition_open(struct nvtaskset_partition **partition, const struct nvtaskset_topology *topology,
                             pid_t pid, struct nvtaskset_error *error);

/* NULL does nothing. */
void nvtaskset_partition_close(struct nvtaskset_partition *partition);

/* The TPCs of a GPU that the process may use: all if the partition does not restrict the GPU. The empty set if the
 * partition has only TPCs that the GPU lacks: the process ignores such a set. */
int nvtaskset_partition_get(struct nvtaskset_partition *partition, unsigned int gpu, struct nvtaskset_set *set,
                            struct nvtaskset_error *error);

/* Sets the TPCs of a GPU that the process may use; other GPUs keep their TPCs. The next launch obeys. Takes some two
 * microseconds, most of it for the kernel's lock against other programs with changes of the same partition. If another
 * program is stopped while holding the lock, waits for two seconds at most and then fails (BUSY); if another program
 * dies there, the old set stays in force. An empty set, or a set with TPCs that the GPU lacks, is an error. Does not
 * notice the end of the process: see nvtaskset_partition_check. */
int nvtaskset_partition_set(struct nvtaskset_partition *partition, unsigned int gpu, const struct nvtaskset_set *set,
                            struct nvtaskset_error *error);

/* 0 if the process runs, perhaps another program since an exec, and the partition is in force or will be at the first
 * use of CUDA. -1 if the process has ended (ENDED); has a new partition (STALE), for example after executing nvtaskset;
 * has no partition any more (the code of nvtaskset_partition_open); or does not obey now (NOT_IN_FORCE), for example
 * because of a profiler. Takes some dozens of microseconds. */
int nvtaskset_partition_check(struct nvtaskset_partition *partition, struct nvtaskset_error *error);

/* A file descriptor for poll(2) and the like: readable once the process has ended. Belongs to the handle: do not close
 * the descriptor. -1 if the kernel has none, before Linux 5.3. */
int nvtaskset_partition_descriptor(const struct nvtaskset_partition *partition);

/* A reason says why a launch did not simply run inside the partition. Reasons are numbers below this one. */
#define NVTASKSET_REASONS_MAX 16

struct nvtaskset_counters {
	size_t size;           /* set by the caller: sizeof(struct nvtaskset_counters) */
	/* Kernels are counted at their upload: outside of graphs, at each launch. A kernel in a CUDA graph is uploaded
	 * at the graph's first launch, and at the first launch after a change of the partition. */
	uint64_t restricted;   /* kernels kept inside the partition */
	uint64_t unrestricted; /* kernels left unchanged */
	uint64_t refreshed;    /* nodes of CUDA graphs uploaded again after a change */
	uint64_t reasons[NVTASKSET_REASONS_MAX]; /* how often each reason occurred, see nvtaskset_reason_text */
};

/* Counters only rise. The process itself writes the counters: do not trust a hostile process. */
int nvtaskset_partition_counters(struct nvtaskset_partition *partition, struct nvtaskset_counters *counters,
                                 struct nvtaskset_error *error);

/* A reason in words; NULL if this version has no such reason. */
const char *nvtaskset_reason_text(unsigned int reason);

/* The kernels of a process on one GPU. All 0 on an unused GPU. */
struct nvtaskset_kernels {
	size_t size;        /* set by the caller: sizeof(struct nvtaskset_kernels) */
	uint64_t launched;  /* kernels; in a CUDA graph at each launch of the graph */
	uint64_t ended;     /* counted by the GPU itself */
	uint64_t in_flight; /* waiting, or running */
	/* The part of `launched` and `ended` whose launches only the GPU knows: kernels in graphs with conditional
	 * bodies, and in graphs launched by kernels. They count when they end, and are never in flight. */
	uint64_t unannounced;
	/* A bit for each reason why some kernels are not counted, see nvtaskset_gap_text. May be 0 where the partition
	 * is not in force: see nvtaskset_partition_check. */
	uint64_t gaps;
	uint32_t launched_is_known; /* 1 or 0: `launched` counts all kernels */
	uint32_t ended_is_known;    /* 1 or 0: the same for `ended`, `in_flight` and `unannounced` */
};

/* Reads the counts of one GPU, one after the other while the process runs. Ended kernels are read before launched
 * kernels: a kernel that ends during the call counts as in flight. The counts are exact when nothing is being launched.
 * A graph's kernels count as launched when the call returns, and some may have ended before. Known counts only rise,
 * except `in_flight`; a program executed by the process begins with 0. The process, which may be hostile, has the
 * counts in its memory. Takes some dozens of microseconds. */
int nvtaskset_partition_kernels(struct nvtaskset_partition *partition, unsigned int gpu,
                                struct nvtaskset_kernels *kernels, struct nvtaskset_error *error);

/* Why kernels are not counted, by the number of a bit of `gaps`; NULL if this version has no such reason. */
const char *nvtaskset_gap_text(unsigned int gap);

/* --- the time ----------------------------------------------------------------------------------------------------- */

/* How much of the time a process may be present on its GPUs, and the time used. Some members have two meanings.
 * `suspended`: for a process without MPS, which is suspended in the middle of kernels. `held`: for a client of MPS,
 * whose launches are held back. */
struct nvtaskset_quota {
	size_t size;         /* set by the caller: sizeof(struct nvtaskset_quota) */
	uint32_t run_us;     /* of each period, on average; `period_us` or more: the quota was lifted */
	uint32_t period_us;  /* 0: never given a quota, and all else is 0 */
	uint32_t in_force;   /* 1 or 0 */
	uint32_t state;      /* see nvtaskset_quota_text */
	uint64_t present_us; /* suspended: wanted to run, and was not suspended. held: had kernels on GPUs, estimated */
	uint64_t aside_us;   /* suspended: wanted to run, and was suspended. held: launches were held */
	/* suspended: early resumptions, with work on another GPU in flight. held: launches that had to wait no
	 * longer */
	uint64_t bounded;
	uint64_t held;       /* suspended: 0. held: the number of held launches */
};

/* The order of processes on a GPU, and the proportions between processes of the same priority. */
struct nvtaskset_rank {
	size_t size;         /* set by the caller: sizeof(struct nvtaskset_rank) */
	int32_t priority;    /* 0 to 99, higher first; -1: never given, counts as 50 */
	uint32_t weight;     /* 1 to 10000; 0: never given, counts as 100 */
	uint32_t in_force;   /* from here on as in a quota; all 0 without a priority and a weight */
	uint32_t state;
	uint64_t present_us;
	uint64_t aside_us;
	uint64_t bounded;
	uint64_t held;
};

/* Lending and borrowing of a client of MPS, as --lend and --borrow of nvtaskset(1). */
struct nvtaskset_lending {
	size_t size;      /* set by the caller: sizeof(struct nvtaskset_lending) */
	uint32_t lend_us; /* how long a launch may wait for TPCs that the process has lent; 0: lends nothing */
	uint32_t borrows; /* 1 or 0: the process may use lent TPCs */
	struct nvtaskset_set borrow;   /* the TPCs to borrow, of each GPU */
	struct nvtaskset_set borrowed; /* in use now; this and the rest is empty or 0 for a group */
	uint64_t borrowed_tpc_us;      /* the time of borrowing, times the TPCs */
	uint64_t overruns;             /* measured launches in borrowed TPCs, longer than the lender's limit */
	uint32_t in_force;             /* as in a quota */
	uint32_t state;
};

/* Read the settings and results, from memory of the process, which may be hostile. */
int nvtaskset_partition_lending(struct nvtaskset_partition *partition, struct nvtaskset_lending *lending,
                                struct nvtaskset_error *error);
int nvtaskset_partition_quota(struct nvtaskset_partition *partition, struct nvtaskset_quota *quota,
                              struct nvtaskset_error *error);
int nvtaskset_partition_rank(struct nvtaskset_partition *partition, struct nvtaskset_rank *rank,
                             struct nvtaskset_error *error);

/* Gives the process a quota: a period of 1000 to 10 000 000 microseconds, and 1000 or more to run; the whole period
 * lifts the quota. In force at once, or from the process's next CUDA call on. */
int nvtaskset_partition_set_quota(struct nvtaskset_partition *partition, uint32_t run_us, uint32_t period_us,
                                  struct nvtaskset_error *error);

/* Gives the process a priority, 0 to 99: 50 is as without a priority. */
int nvtaskset_partition_set_priority(struct nvtaskset_partition *partition, unsigned int priority,
                                     struct nvtaskset_error *error);

/* Gives the process a weight, 1 to 10000: 100 is as without a weight. Not for clients of MPS. */
int nvtaskset_partition_set_weight(struct nvtaskset_partition *partition, unsigned int weight,
                                   struct nvtaskset_error *error);

/* Lend: other processes may use the process's TPCs while the process is idle. A launch of the process may then wait for
 * the TPCs, up to `limit_us`, 100 to 1 000 000; 0: lends no more. Borrow: the process may use lent TPCs of `set`; NULL:
 * borrows no more; an empty set is an error. Only for clients of MPS. */
int nvtaskset_partition_set_lend(struct nvtaskset_partition *partition, uint32_t limit_us,
                                 struct nvtaskset_error *error);
int nvtaskset_partition_set_borrow(struct nvtaskset_partition *partition, const struct nvtaskset_set *set,
                                   struct nvtaskset_error *error);

/* The group's settings of the time. Results are the members': `in_force`, `state` and so on are 0. */
int nvtaskset_group_quota(const struct nvtaskset_group *group, struct nvtaskset_quota *quota,
                          struct nvtaskset_error *error);
int nvtaskset_group_rank(const struct nvtaskset_group *group, struct nvtaskset_rank *rank,
                         struct nvtaskset_error *error);

/* Give the group settings: a quota is for all members together, all else for each member. In ranges as above. Members
 * are not asked: a member that cannot have a setting tells by `state`, and on its standard error. */
int nvtaskset_group_set_quota(struct nvtaskset_group *group, uint32_t run_us, uint32_t period_us,
                              struct nvtaskset_error *error);
int nvtaskset_group_set_priority(struct nvtaskset_group *group, unsigned int priority, struct nvtaskset_error *error);
int nvtaskset_group_set_weight(struct nvtaskset_group *group, unsigned int weight, struct nvtaskset_error *error);
int nvtaskset_group_lending(const struct nvtaskset_group *group, struct nvtaskset_lending *lending,
                            struct nvtaskset_error *error);
int nvtaskset_group_set_lend(struct nvtaskset_group *group, uint32_t limit_us, struct nvtaskset_error *error);
int nvtaskset_group_set_borrow(struct nvtaskset_group *group, const struct nvtaskset_set *set,
                               struct nvtaskset_error *error);

/* The result of a process's settings of the time, by `state`; NULL if this version has no such state. */
const char *nvtaskset_quota_text(uint32_t state);

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* How much memory of each GPU a process, or the processes of a group together, may have, and the use of a GPU. */
struct nvtaskset_memory {
	size_t size;       /* set by the caller: sizeof(struct nvtaskset_memory) */
	uint64_t limit;    /* bytes of each GPU; 0: there is no limit */
	uint64_t used;     /* bytes in use by the process; 0 for a group */
	uint64_t together; /* bytes in use by all processes that share the limit */
};

/* Read the limit and the use. Hostile processes can write the numbers. nvtaskset_partition_memory also asks NVIDIA's
 * kernel driver, which takes some milliseconds, and counts all memory of a process without a limit. */
int nvtaskset_partition_memory(struct nvtaskset_partition *partition, unsigned int gpu, struct nvtaskset_memory *memory,
                               struct nvtaskset_error *error);
int nvtaskset_group_memory(const struct nvtaskset_group *group, unsigned int gpu, struct nvtaskset_memory *memory,
                           struct nvtaskset_error *error);

/* Give a limit, in bytes; 0 lifts the limit. Holds from the next allocation on; nothing in use is taken away. In a
 * group with a file, a process obeys both limits. In any other group, the process's own limit replaces the group's. */
int nvtaskset_partition_set_memory(struct nvtaskset_partition *partition, uint64_t limit,
                                   struct nvtaskset_error *error);
int nvtaskset_group_set_memory(struct nvtaskset_group *group, uint64_t limit, struct nvtaskset_error *error);

/* --- times -------------------------------------------------------------------------------------------------------- */

/* Watches the work of a process on the GPUs: for how long the GPUs were busy, and with which kernels.
 *
 * Counts are always there; times are measured only while somebody looks, at the program's cost (nvtaskset(1), "top").
 * Times and numbers of kernels are sums since the watcher was opened, and only grow: for a second, take differences of
 * known numbers. `gaps`, `error_ns` and `is_known` are of the last look. Times are estimates, since the GPU tells only
 * when a kernel has ended. A kernel launched before has no time. */
struct nvtaskset_watcher;

/* An unknown number. */
#define NVTASKSET_UNKNOWN UINT64_MAX

/* Look every NVTASKSET_LOOK_MS ms: the process remembers only the last 8192 launches of each context. After
 * NVTASKSET_LOOK_LAST_MS without a look, nothing is measured until the next look. */
#define NVTASKSET_LOOK_MS 50
#define NVTASKSET_LOOK_LAST_MS 1500

/* For everybody who may change the process's partition; the process may be the caller itself. Any number of watchers
 * may watch a process. `topology` must stay until the watcher is closed. A watcher uses some file descriptors,
 * close-on-exec, and maps the memory in which the process remembers launches. */
int nvtaskset_watcher_open(struct nvtaskset_watcher **watcher, const struct nvtaskset_topology *topology, pid_t pid,
                           struct nvtaskset_error *error);

/* NULL does nothing. Without another watcher, the process measures nothing any more within NVTASKSET_LOOK_LAST_MS. */
void nvtaskset_watcher_close(struct nvtaskset_watcher *watcher);

/* Looks now and, sleeping in between, as often as needed for `milliseconds`; 0: once. A look takes a few milliseconds;
 * at most 120 ms, twice a second, while a GPU's clock is not known. -1 if the process has ended (ENDED): results up to
 * its end can still be read. */
int nvtaskset_watcher_look(struct nvtaskset_watcher *watcher, unsigned int milliseconds, struct nvtaskset_error *error);

/* How long one GPU was busy for the process, as of the last look. */
struct nvtaskset_times {
	size_t size;         /* set by the caller: sizeof(struct nvtaskset_times) */
	uint64_t elapsed_ns; /* since the watcher was opened */
	uint64_t span_ns;    /* the part for which the following is known: busy is busy_ns of span_ns */
	uint64_t busy_ns;    /* at least one kernel was on the GPU; under MPS also while all waited for a neighbour's */
	uint64_t tpc_ns;     /* busy_ns times the TPCs of the kernels */
	uint64_t error_ns;   /* by how much a begin may be wrong if the GPU was idle before; may be NVTASKSET_UNKNOWN */
	uint64_t timed;      /* kernels whose end was seen; of kernels in graphs, only a sample */
	uint64_t lost;       /* kernels with a lost time, for want of looks */
	/* A bit for each reason why times are not known now, see nvtaskset_time_gap_text. 0 if too little was seen. */
	uint64_t gaps;
	uint32_t is_known;    /* 1 or 0; 0: busy_ns and tpc_ns are NVTASKSET_UNKNOWN */
	/* 1 or 0; 1: without MPS, times contain the time slices of other processes, and mean presence. */
	uint32_t is_presence;
};

int nvtaskset_watcher_times(const struct nvtaskset_watcher *watcher, unsigned int gpu, struct nvtaskset_times *times,
                            struct nvtaskset_error *error);

/* Why times are not known, by the number of a bit of `gaps`; NULL if this version has no such reason. */
const char *nvtaskset_time_gap_text(unsigned int gap);

/* The kernels of one function, on all GPUs. Unknown numbers are NVTASKSET_UNKNOWN. */
struct nvtaskset_function {
	size_t size;        /* set by the caller: sizeof(struct nvtaskset_function) */
	/* Mangled, as the compiler wrote, until the watcher is closed. NULL: the sum of all functions whose names found
	 * no room (4096 functions, 4 MiB of names). */
	const char *name;
	uint64_t instances; /* kernels that have ended, in graphs too */
	uint64_t timed;     /* the part with known times, for the following */
	uint64_t total_ns;  /* the average, times the instances */
	uint64_t average_ns, median_ns, min_ns, max_ns;
	uint64_t deviation_ns; /* standard deviation, of a sample */
};

/* Functions are 0 to count - 1, and keep their numbers. Later looks bring more. */
unsigned int nvtaskset_watcher_function_count(const struct nvtaskset_watcher *watcher);
int nvtaskset_watcher_function(const struct nvtaskset_watcher *watcher, unsigned int number,
                               struct nvtaskset_function *function, struct nvtaskset_error *error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
