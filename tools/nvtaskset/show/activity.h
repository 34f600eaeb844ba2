/*
 * What programs did on the GPUs between two looks at them.
 */
#ifndef NVTASKSET_ACTIVITY_H
#define NVTASKSET_ACTIVITY_H

#include "rows.h"
#include "watched.h"

/* X(identifier, member in JSON, whether it is an integer there, heading, rank): what `top PID` tells of a function, as
 * Nsight Systems' cuda_gpu_kern_sum does; how many instances the times are of, which of kernels of graphs are samples; and
 * of a borrower, how many took longer in others' TPCs than these allow. */
#define KERNEL_NUMBERS(X)                                  \
	X(SHARE, "share", false, "TIME%", 0)               \
	X(TOTAL, "total_ns", false, "TOTAL", 3)            \
	X(INSTANCES, "instances", true, "INSTANCES", 2)    \
	X(TIMED, "timed", true, "TIMED", 8)                \
	X(AVERAGE, "average_ns", false, "AVG", 1)          \
	X(MEDIAN, "median_ns", false, "MED", 4)            \
	X(SHORTEST, "min_ns", false, "MIN", 5)             \
	X(LONGEST, "max_ns", false, "MAX", 6)              \
	X(DEVIATION, "deviation_ns", false, "STDDEV", 7)   \
	X(OVERRUNS, "overruns", true, "OVERRUNS", 2)

enum kernel_number {
#define KERNEL_NUMBER_ENUM(identifier, member, is_integer, heading, rank) KERNEL_##identifier,
	KERNEL_NUMBERS(KERNEL_NUMBER_ENUM)
#undef KERNEL_NUMBER_ENUM
	KERNEL_NUMBER_COUNT
};

/* One function of the process that was chosen for its kernels, since the first look. */
struct kernel_activity {
	char *name; /* demangled, clean text (terminal/text.h) */
	struct reading numbers[KERNEL_NUMBER_COUNT]; /* the share of the sum of all: 0 … 1; durations in nanoseconds */
};

/* Initially all zero. */
struct activities {
	struct processes processes;
	const struct topology_list *gpus;
	double at_ms;        /* when this look was taken, as of clock_ms */
	struct reading span; /* seconds since the look before; not known at the first one */
	size_t count;
	struct row *list; /* by rising pid; those of a program stand together */
	bool measures_times;   /* whether times are measured; programs pay for that */
	pid_t kernels_of;      /* whose kernels are looked at, and only its times; 0: nobody's */
	struct watch_list watched;
	size_t kernel_count;
	struct kernel_activity *kernels;
	const char *why_no_kernels; /* NULL where they are known */
};

/* Looks at all processes that this user may examine; what they did since the look before goes into the rates. The caller
 * frees it in the end. -1 with the reason; what was there stays. */
int activities_look(struct activities *activities, const struct topology_list *gpus, struct error *error);
void activities_free(struct activities *activities);

/* To be called every MONITOR_TAKE_MS between two looks that measure times: programs remember no more than that. A
 * function of a struct meanwhile. */
void activities_keep_up(void *activities);

/* The same process on the same GPU; NULL if it is not there. */
const struct row *activities_find(const struct activities *activities, const struct process *process,
                                  struct pci_address gpu);

#endif
