/*
 * When the kernels of one process were on one GPU: an estimate, from launches and ends.
 *
 * Only the end of a kernel has a timestamp. A kernel began when the kernel before in the same stream had ended, but not
 * before the launch had come to the GPU. Neither time is exact: the calibration gives the time of both ways, and the
 * two clocks are compared by events in a known order (clock_fit.h). All results are on the processor's clock.
 *
 * A kernel that waits for a copy in its stream, or an event, counts from the first possible begin; and under MPS while
 * the kernel waits for another process's blocks. For graphs, the caller says what is known.
 *
 * Nothing here reads a clock or foreign memory. A struct times is for one thread.
 */
#pragma once

#include "clock_fit.h"
#include "gpu/qmd.h"

struct times_ways {
	uint64_t latency_ns; /* from a launch to the kernel's begin on an idle GPU, usually */
	uint64_t release_ns; /* from the end to the timestamp */
	uint64_t next_ns;    /* from the timestamp to the begin of the next kernel in the stream, or graph */
};

struct times_calibration {
	struct times_ways plain;     /* a kernel of its own, also as a whole graph */
	struct times_ways graph;     /* several kernels of a graph */
	uint64_t front_ns; /* in a graph, from the timestamp of the driver's own kernel in front to the first begin */
	uint64_t paused_ns_per_ms;   /* additional latency for each ms without a launch of the program */
	uint64_t paused_most_ns;
	uint64_t latency_least_ns;
	uint64_t visible_least_ns;   /* from the timestamp until the processor can see it */
	uint64_t visible_most_ns;    /* usually */
};

/* As measured on an H100 (hardware.md, "Releases"). */
extern const struct times_calibration times_usual, times_under_mps;

struct times_kernel {
	uint64_t stream;
	uint64_t launched_ns; /* the processor's time */
	uint64_t timestamp_ns;    /* the GPU's; not used for a running kernel */
	unsigned int tpcs;
	struct qmd_grid grid;
	unsigned int function; /* the caller's number, as is_borrowed for the interval */
	bool is_borrowed;
	struct times_graphs {
		uint64_t launched_ns; /* the last launch */
		uint64_t timestamp_ns; /* the GPU's, of the last end; 0: no graphs; TIMES_UNKNOWN: not known */
	} before, perhaps_before; /* in the kernel's stream; in further streams. Not for a running kernel */
};

#define TIMES_UNKNOWN UINT64_MAX

enum times_kind {
	TIMES_UNFINISHED, /* has not ended yet */
	TIMES_KERNEL,
	TIMES_GRAPH, /* a launch of a graph */
	TIMES_NODE /* a part of a launch of a graph, and not busy by itself */
};

struct times_interval {
	uint64_t begin, end;
	bool may_be_shorter; /* waited for a graph until an unknown time */
	bool is_behind; /* begins at the end of the kernel before in the stream; else guessed by the launch */
	bool is_borrowed;
	enum times_kind kind;
	unsigned int tpcs, function;
	struct qmd_grid grid;
	uint64_t stream, launched; /* of a graph: `stream` is the instance, and `launched` is 0 */
};

struct times {
	struct times_calibration calibration;
	struct clock_fit fit;
	struct shared_clock *shared; /* NULL: not shared */
	struct clock_offset offset; /* the last asked for */
	bool has_offset;
	uint64_t launched; /* the last launch of an added kernel */
	uint64_t begin; /* of the next times_take */
	struct times_stream {
		uint64_t stream, timestamp, used; /* the last timestamp there; the last use of the entry */
	} streams[128];
	uint64_t used;
	struct times_interval *intervals;
	size_t count, room;
};

struct times_taken {
	uint64_t span_ns, busy_ns, tpc_ns;
	uint64_t changes;  /* from idle to busy */
	uint64_t error_ns; /* of each change; UINT64_MAX: no clocks were compared */
	uint64_t busy_error_ns; /* of all changes; the span at most */
};

/* Covers from `now` on. The caller closes `times`. */
void times_open(struct times *times, const struct times_calibration *calibration, uint64_t now);
void times_close(struct times *times);

/* Shares the knowledge of the GPU's clock, as long as `times` is used. */
void times_share(struct times *times, struct shared_clock *shared);

/* As clock_fit_offset: by the bounds here, or by better shared bounds without a contradiction. */
bool times_clock(const struct times *times, uint64_t cpu, struct clock_offset *offset);

/* A kernel was launched (0: not known when), and the timestamp has been seen at `seen`, and not yet at `unseen` if not
 * 0. Before times_add for the same kernel. Returns whether the clocks are known better now. */
bool times_compare(struct times *times, const struct times_kernel *kernel, uint64_t unseen, uint64_t seen);

/* The kernel has ended: adds its time on the GPU to the next times_take; the duration may be TIMES_UNKNOWN. In the
 * order of launches in each stream. False if not known, since no clocks have been compared, or without memory. */
bool times_add(struct times *times, const struct times_kernel *kernel, uint64_t *duration_ns);

/* Whether the clocks are known well enough for the last duration of times_add. */
bool times_know_duration(const struct times *times, uint64_t duration_ns);

/* The kernel has not ended at `now`. Only the first in each stream since the last times_take matters. */
bool times_add_running(struct times *times, const struct times_kernel *kernel, uint64_t now);

/* Something was busy then, on the processor's clock. */
bool times_add_interval(struct times *times, struct times_interval interval);

/* Converts a timestamp to the processor's clock. Until an offset is known, `near` says at about which time to look for
 * the offset, on the processor's clock. False if the clocks have not been compared. */
bool times_convert(struct times *times, uint64_t timestamp, uint64_t near, uint64_t *time);

/* Leaves out the time before `until`, which is not known. */
void times_lose(struct times *times, uint64_t until);

/* Visits each stretch between `from` and `until` with something busy: in the order of time, with the most TPCs of
 * overlapping intervals. None without memory. */
typedef void times_visitor(void *data, uint64_t begin, uint64_t end, unsigned int tpcs);
void times_sweep(const struct times_interval *intervals, size_t count, uint64_t from, uint64_t until,
                 times_visitor *visit, void *data);

/* From the last call, or times_open, to `now`. */
void times_take(struct times *times, uint64_t now, struct times_taken *taken);

/* Whether the error of the clocks is little of the busy time or of the span. A kernel launched long before the only
 * moment when its end was seen may have run all the time or not at all. */
bool times_are_exact(const struct times_taken *taken);

/* --- durations.c -------------------------------------------------------------------------------------------------- */

/*
 * How long kernels took: exact sums and extremes, and a histogram for the median. Fixed size, no allocation; two can be
 * added up. All zero is empty.
 */

/* A bucket is at most 1/16 of its value wide; values above 2^40 ns, 18 minutes, are in the last bucket. */
#define DURATIONS_STEPS 16 /* for each power of two */
#define DURATIONS_BUCKETS (DURATIONS_STEPS * 37)

struct durations {
	uint64_t count;
	uint64_t sum_ns, min_ns, max_ns;
	double sum_of_squares;
	uint32_t buckets[DURATIONS_BUCKETS];
};

void durations_add(struct durations *durations, uint64_t ns);
void durations_merge(struct durations *to, const struct durations *from);

/* 0 if empty. The median is within 1/32 of the exact median; the deviation is a sample's, 0 for one value. */
double durations_average(const struct durations *durations);
double durations_deviation(const struct durations *durations);
uint64_t durations_median(const struct durations *durations);
