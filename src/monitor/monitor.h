/*
 * Looks at a process's work on the GPUs: for how long the GPUs were busy, and with which kernels.
 *
 * Counts (state/kernels/counts.h) are always there. Times are measured only while somebody looks: then the GPU writes
 * the end of each kernel into memory of the process (state/kernels/timestamps.h), which is read here. Any number of
 * watchers may look at the same process. A look ends by itself MONITOR_LEASE_MS after the last monitor_take, also if
 * the watcher was killed.
 *
 * Whoever may change the process's partition may look: its user, and root. The process may be hostile: numbers may then
 * be wrong, and nothing worse happens.
 *
 * An unknown number is not 0: see is_time_known.
 */
#pragma once

#include "base/error.h"
#include "monitor/estimate/times.h"
#include "state/kernels/counts_read.h"
#include "state/segment/events.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MONITOR_LEASE_MS 1500 /* LEASE_NS (state/segment/events.h) in ms */

/* Call monitor_take at least this often: each context remembers its last 8192 launches. Older launches are `lost`. */
#define MONITOR_TAKE_MS 50

/* Why the times on a GPU are unknown or incomplete. X(identifier, text for users). */
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

/* The work on one GPU between two calls of monitor_take. */
struct monitor_gpu {
	struct pci_address pci;
	uint32_t gaps;        /* a bit for each enum monitor_gap */
	/* busy_ns and tpc_ns are known: nothing but `lost` is missing, and error_ns changes little */
	bool is_time_known;
	bool is_presence;     /* without MPS: a kernel's time contains time slices of other processes */
	uint64_t kernels;     /* that have ended, exact (state/kernels/counts.h); also without known times */
	uint64_t timed;       /* the part with a seen end */
	uint64_t lost; /* the part with a time overwritten before the read, or in a lapse of the look */
	uint64_t span_ns; /* the time covered, without stretches of lost timestamps: BUSY% is busy of span */
	uint64_t busy_ns; /* at least one kernel was on the GPU; under MPS also while all waited for a neighbour's */
	uint64_t tpc_ns;      /* busy_ns times the TPCs of the kernels; the most of overlapping kernels */
	uint64_t busy_error_ns; /* by how much busy_ns may be wrong, if the clocks are */
	uint64_t error_ns; /* the error of each change from idle to busy: of a start without a kernel in front */
	/* With monitor_tell: since `begin_ns` something was busy then. The caller frees the intervals. */
	uint64_t begin_ns;
	size_t interval_count;
	struct times_interval *intervals; /* the functions' numbers are places in the list of functions */
	uint64_t unplaced; /* kernels that have ended without an interval: the clocks had not been compared */
};

#define MONITOR_GPUS COUNTS_GPUS

/* The work of one function on all GPUs, between two calls of monitor_take. */
struct monitor_function {
	const char *name;           /* mangled, as the compiler wrote; NULL: all functions whose names found no room */
	uint64_t instances;         /* that have ended; nodes of graphs as often as the graph was launched */
	struct durations durations; /* of instances with a known time; for nodes of graphs samples */
	uint64_t overruns; /* instances outside of graphs that took too long in borrowed TPCs */
};

struct monitor_times {
	uint32_t gaps; /* of all GPUs, in the list or not */
	unsigned int gpu_count;
	struct monitor_gpu gpus[MONITOR_GPUS]; /* with a context of the process */
	unsigned int function_count;
	const struct monitor_function *functions; /* until the next call for this look; by first launch */
	/* With monitor_tell: the partition in force (NULL: editors overtook the read), and events. */
	const struct segment_revision *revision;
	const struct segment_events_read *events;
};

struct monitor;

/* Begins to look. NULL with the reason: as for editor_open; or the process's segment may not be written. A process
 * without a context yet can be looked at. The first monitor_take says what came since. */
struct monitor *monitor_begin(pid_t pid, struct purse *purse, struct error *error);

/* From the next call of monitor_take on, intervals are told, and the partition; or no more. A kernel with borrowed TPCs
 * may take `limit_ns` there at most; 0: any time. */
void monitor_tell(struct monitor *monitor, bool tells, uint64_t limit_ns);

/* The work since the last call; the look goes on. `purse` pays for the look, and for the wait for another editor's lock
 * (base/purse.h). After a pause of MONITOR_LEASE_MS or more, nothing was measured for a while: the span begins
 * anew. Waits for clocks to be compared: a few milliseconds; where clocks are unknown, at most 120, twice a second for
 * all looks of this process. 1 with the reason if the process has ended: `times` has the rest of the work. -1 with the
 * reason, without times. */
int monitor_take(struct monitor *monitor, struct monitor_times *times, struct purse *purse, struct error *error);

/* Ends the look of this watcher. `monitor` may be NULL. */
void monitor_end(struct monitor *monitor);

/* --- loans.c ------------------------------------------------------------------------------------------------------ */

/*
 * How long a lender may have waited for launches in its lent TPCs: an upper bound, from a watcher's view of both
 * programs. The TPCs of a launch are not known, nor further reasons for the lender's wait. Graphs are not seen.
 */

struct loan_launch {
	struct pci_address pci;
	uint64_t launched_ns, ended_ns; /* the end at the latest */
};

/* The last launches of a borrower with more TPCs than its own. All zero: empty. */
#define LOANS_MAX 8192

struct loans {
	uint64_t count; /* number n is at n % LOANS_MAX */
	struct loan_launch list[LOANS_MAX];
};

void loans_add(struct loans *loans, const struct monitor_times *times);

/* The wait of a lender's launch: from the launch to the end of the borrower's last earlier launch; 0: all had ended.
 * Looks at LOANS_IN_FLIGHT launches before: more are not in flight at a time. */
#define LOANS_IN_FLIGHT 64
uint64_t loans_wait(const struct loans *loans, const struct loan_launch *lender);

/* The launch of an interval; the end includes the error of the clocks. */
struct loan_launch loans_launch(const struct monitor_gpu *gpu, const struct times_interval *kernel);
