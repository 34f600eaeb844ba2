/*
 * What programs did on the GPUs between two looks.
 */
#ifndef NVTASKSET_ACTIVITY_H
#define NVTASKSET_ACTIVITY_H

#include "rows.h"
#include "watched.h"

/* X(identifier, member in JSON, whether it is an integer there, heading, rank): the numbers of `top PID` about a
 * function, as in Nsight Systems' cuda_gpu_kern_sum. TIMED counts the instances with times: of kernels in graphs, only
 * samples. OVERRUNS counts a borrower's instances in borrowed TPCs that took longer than the lenders allow. */
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

/* A function of the process `kernels_of`, since the first look. */
struct kernel_activity {
	char *name; /* demangled, clean text (terminal/text.h) */
	struct reading numbers[KERNEL_NUMBER_COUNT]; /* SHARE: 0 … 1, of the sum over all functions; durations in ns */
};

struct activities {
	struct processes processes;
	const struct topology_list *gpus;
	double at_ms;        /* when this look was taken (clock_ms) */
	struct reading span; /* seconds since the look before; not known at the first look */
	size_t count;
	struct row *list; /* by rising pid; the rows of a program stand together */
	bool measures_times;   /* whether times are measured, at a cost for programs */
	pid_t kernels_of;      /* the process whose kernels are shown; only its times are measured then; 0: none */
	struct watch_list watched;
	size_t kernel_count;
	struct kernel_activity *kernels;
	const char *why_no_kernels; /* NULL: known */
};

/* Looks at all processes that this user may examine, and makes the rates since the look before. Begins with all zero;
 * the caller frees the result in the end. -1 with the reason; the look before stays. */
int activities_look(struct activities *activities, const struct topology_list *gpus, struct error *error);
void activities_free(struct activities *activities);

/* -1 with the reason if the process is not among the programs of the look; 0 for pid 0. */
int activities_check(const struct activities *activities, pid_t pid, struct error *error);

/* To be called every MONITOR_TAKE_MS between two looks with times: programs remember no more. For struct meanwhile. */
void activities_keep_up(void *activities);

/* The row of the same process on the same GPU, or NULL. */
const struct row *activities_find(const struct activities *activities, const struct process *process,
                                  struct pci_address gpu);

#endif
