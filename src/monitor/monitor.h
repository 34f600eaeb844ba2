/*
 * Looking at what a process does with the GPUs: how long they were busy for it, and with which kernels.
 *
 * Counts (state/kernels/counts.h) are always there. Times are measured only while somebody looks: then the GPU writes
 * when each kernel has ended, into memory of the process's (state/kernels/timestamps.h), and this reads it. Any number
 * of watchers may look at the same process. Looking ends by itself MONITOR_LEASE_MS after the last monitor_take, also
 * if the watcher was killed.
 *
 * Who may change the process's partition may look: its user, and root. The process may be hostile: its numbers may then
 * be wrong, and nothing worse happens.
 *
 * A number that is not known is not 0: see is_time_known.
 */
#ifndef NVTASKSET_MONITOR_MONITOR_H
#define NVTASKSET_MONITOR_MONITOR_H

#include "base/error.h"
#include "monitor/estimate/durations.h"
#include "state/kernels/counts_read.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MONITOR_LEASE_MS 1500

/* Call monitor_take at least this often: each context remembers its last 8192 launches. What was more is `lost`. */
#define MONITOR_TAKE_MS 50

/* Why the times on a GPU are not known, or not all of them. X(identifier, text for users). */
#define MONITOR_GAPS(X)                                                                                      \
	X(OFF, "counting is turned off (NVTASKSET_ACCOUNT)")                                              \
	X(NO_MEMORY, "there is no shared memory for times")                                               \
	X(NO_SLOTS, "this GPU, or its driver, cannot tell when a kernel has ended")                      \
	X(REFUSED, "the driver did not let the GPU write the times")                                      \
	X(PROFILER, "a profiler in the program uses what tells when a kernel has ended")                  \
	X(OLDER, "a context or a graph is older than nvtaskset in this process")                          \
	X(CLOSED, "the program has closed the file of its times")                                         \
	X(DAMAGED, "what the program says of its times cannot be true")                                   \
	X(LOCKED, "another process keeps its partition locked, so the program does not learn that somebody looks") \
	X(CLOCKS, "the GPU's clock is not known well enough for kernels as short as these")

enum monitor_gap {
#define MONITOR_GAP_ENUM(identifier, text) MONITOR_##identifier,
	MONITOR_GAPS(MONITOR_GAP_ENUM)
#undef MONITOR_GAP_ENUM
	MONITOR_GAP_COUNT
};

const char *monitor_gap_text(enum monitor_gap gap);

/* What came on one GPU between two calls of monitor_take. */
struct monitor_gpu {
	struct pci_address pci;
	uint32_t gaps;        /* a bit for each enum monitor_gap */
	bool is_time_known; /* busy_ns and tpc_ns are: nothing is missing but what is `lost`, and error_ns changes
	                       little */
	bool is_presence;     /* without MPS: a kernel's time contains the time slices of other processes */
	uint64_t kernels;     /* that have ended, exact (state/kernels/counts.h); also where no time is known */
	uint64_t timed;       /* of them, those whose end was seen */
	uint64_t lost; /* of them, those whose time was overwritten before it was read, or while looking had ended */
	uint64_t span_ns; /* how long this took, without the stretches from which timestamps are lost: BUSY% is busy of
	                     span */
	uint64_t busy_ns; /* at least one kernel was on the GPU; under MPS also while all of them waited for a neighbour's */
	uint64_t tpc_ns;      /* the same times the TPCs that the kernels had; where they overlap, the most of them */
	uint64_t busy_error_ns; /* by how much busy_ns may be wrong, if the clocks are */
	uint64_t error_ns; /* how exactly a start is known that no kernel was in front of: of each change from idle to
	                      busy */
};

#define MONITOR_GPUS COUNTS_GPUS

/* What one function did on all GPUs, between two calls of monitor_take. */
struct monitor_function {
	const char *name;           /* as the compiler wrote it, mangled; NULL: all functions that had no room */
	uint64_t instances;         /* that have ended: nodes of graphs too, as often as their graph was launched */
	struct durations durations; /* of those whose time is known; of the nodes of graphs these are samples */
	uint64_t overruns; /* of those in no graph: they took longer than they may in TPCs that they had borrowed */
};

/* A kernel that has ended and was in no graph, by process_clock_ns. */
struct monitor_kernel {
	struct pci_address pci;
	uint64_t launched_ns, ended_ns; /* the end is not later than this */
	bool is_borrowed; /* it could use more TPCs than the process's own */
};

struct monitor_times {
	uint32_t gaps; /* of all GPUs, also of those that are not in the list */
	unsigned int gpu_count;
	struct monitor_gpu gpus[MONITOR_GPUS]; /* on which the process has made a context */
	unsigned int function_count;
	const struct monitor_function *functions; /* until the next call for this look; in the order of their first launch */
	size_t kernel_count;
	const struct monitor_kernel *kernels; /* until then; of each context in the order of launches; see monitor_tell_kernels */
};

struct monitor;

/* Begins to look. NULL with the reason: as for editor_open; or the process's segment may not be written. A process that
 * has made no context yet can be looked at. The first monitor_take says what came since. */
struct monitor *monitor_begin(pid_t pid, struct purse *purse, struct error *error);

/* From the next call of monitor_take on, kernels are told one by one; of those that have borrowed TPCs, none may take
 * longer than this there. 0: they are not told. */
void monitor_tell_kernels(struct monitor *monitor, uint64_t limit_ns);

/* What came since the last call, and looks on. `purse` pays for the look (base/purse.h), and for waiting for
 * another editor's lock. Where that was MONITOR_LEASE_MS ago, or more, nothing was measured for a while: the span then
 * begins anew. It waits for clocks to be compared: a few milliseconds, or where they are not known at all, at most 120,
 * twice a second for all that this process looks at. -1 with the reason if the process has ended. */
int monitor_take(struct monitor *monitor, struct monitor_times *times, struct purse *purse, struct error *error);

/* Nobody looks any more, if no other watcher does. `monitor` may be NULL. */
void monitor_end(struct monitor *monitor);

#endif
