/*
 * When the kernels of one process were on one GPU: an estimate, from when they were launched and when they ended.
 *
 * Only the end of a kernel has a time timestamp. It began when the kernel before it in the same stream had ended, but
 * not before it was launched and had come to the GPU. Neither time is exact: the calibration says how long these ways
 * take, and the two clocks are compared by what must have been before what (clock_fit.h). All results are on the
 * processor's clock.
 *
 * Where a kernel waits for something else, a copy in its stream or an event, it counts from when it could have begun;
 * and under MPS while it waits for another process's blocks. For graphs, the caller says what it knows.
 *
 * Nothing here reads a clock or memory of others. A struct times is for one thread.
 */
#ifndef NVTASKSET_MONITOR_ESTIMATE_TIMES_H
#define NVTASKSET_MONITOR_ESTIMATE_TIMES_H

#include "clock_fit.h"
#include "shared_clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct times_ways {
	uint64_t latency_ns; /* from a launch to the kernel's begin on an idle GPU, usually */
	uint64_t release_ns; /* from its end to its time timestamp */
	uint64_t next_ns;    /* from the timestamp to the begin of the next kernel in the stream, or graph */
};

struct times_calibration {
	struct times_ways plain;     /* a kernel of its own, also if it is all of a graph */
	struct times_ways graph;     /* several kernels of a graph */
	uint64_t front_ns; /* in a graph, from the timestamp of the driver's own kernel in front to the begin of the first */
	uint64_t paused_ns_per_ms;   /* by how much longer the latency is of a program that did not launch for so long */
	uint64_t paused_most_ns;
	uint64_t latency_least_ns;
	uint64_t visible_least_ns;   /* from the timestamp to when the processor can see it */
	uint64_t visible_most_ns;    /* usually */
};

/* As measured on an H100 (hardware.md, "Releases"). */
extern const struct times_calibration times_usual, times_under_mps;

struct times_kernel {
	uint64_t stream;
	uint64_t launched_ns; /* the processor's time */
	uint64_t timestamp_ns;    /* the GPU's; not used for one that runs */
	unsigned int tpcs;
	struct times_graphs {
		uint64_t launched_ns; /* the last of them */
		uint64_t timestamp_ns; /* the last end, by the GPU's clock, whose launch it may be; 0: there are none;
		                          TIMES_UNKNOWN */
	} before, perhaps_before; /* it in its stream, and behind the kernel before it there (graph_times.h); not used for one that runs */
};

#define TIMES_UNKNOWN UINT64_MAX

struct times_interval {
	uint64_t begin, end;
	bool may_be_shorter; /* it waited for a graph, but until when is not known */
	unsigned int tpcs;
};

struct times {
	struct times_calibration calibration;
	struct clock_fit fit;
	struct shared_clock *shared; /* NULL: with nobody */
	struct clock_offset offset; /* the last one that was asked for */
	bool has_offset;
	uint64_t launched; /* the last launch of a kernel that was added */
	uint64_t begin; /* of what the next times_take covers */
	struct times_stream {
		uint64_t stream, timestamp, used; /* the last timestamp there; when this entry was used last */
	} streams[128];
	uint64_t used;
	struct times_interval *intervals;
	size_t count, room;
};

struct times_taken {
	uint64_t span_ns, busy_ns, tpc_ns;
	uint64_t changes;  /* from idle to busy */
	uint64_t error_ns; /* of each of them; UINT64_MAX: no clocks were compared */
	uint64_t busy_error_ns; /* of all of them; the span at most */
};

/* Covers from `now` on. The caller closes it. */
void times_open(struct times *times, const struct times_calibration *calibration, uint64_t now);
void times_close(struct times *times);

/* Shares what is known of the GPU's clock, as long as `times` is used. */
void times_share(struct times *times, struct shared_clock *shared);

/* As clock_fit_offset: what is known here, or what others know better, if that does not contradict it. */
bool times_clock(const struct times *times, uint64_t cpu, struct clock_offset *offset);

/* A kernel was launched at this time, 0 if that is not known, and its timestamp has been seen at `seen`; `unseen`, not
 * 0: at that time it could not be seen yet. Before times_add for the same kernel. Returns whether the clocks are known
 * better now. */
bool times_compare(struct times *times, const struct times_kernel *kernel, uint64_t unseen, uint64_t seen);

/* It has ended: what times_take covers has the interval in which it was on the GPU; the duration may be TIMES_UNKNOWN. In the order of
 * launches in each stream. False if that is not known, since no clocks have been compared, or there is no memory. */
bool times_add(struct times *times, const struct times_kernel *kernel, uint64_t *duration_ns);

/* Whether the clocks are known well enough for the last duration that times_add said. */
bool times_know_duration(const struct times *times, uint64_t duration_ns);

/* It has not ended at `now`. Only the first in each stream since the last times_take matters. */
bool times_add_running(struct times *times, const struct times_kernel *kernel, uint64_t now);

/* Something was busy then, on the processor's clock. */
bool times_add_interval(struct times *times, uint64_t begin, uint64_t end, unsigned int tpcs);

/* A timestamp on the processor's clock. False if the clocks have not been compared. */
bool times_convert(struct times *times, uint64_t timestamp, uint64_t near, uint64_t *time);

/* What was before `until` is not known: it is left out. */
void times_lose(struct times *times, uint64_t until);

/* From the last call, or times_open, to `now`. */
void times_take(struct times *times, uint64_t now, struct times_taken *taken);

/* Whether what the clocks may be wrong by is little of the busy time or of the span. What was launched long before its end
 * was seen, and at no other time, may have run all that time or not at all. */
bool times_are_exact(const struct times_taken *taken);

#endif
