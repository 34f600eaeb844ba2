/*
 * What programs did on the GPUs between two looks.
 */
#pragma once

#include "monitor/function_sums.h"
#include "monitor/monitor.h"
#include "processes.h"
#include "rows.h"

/* --- watched.c: the times of programs, measured as long as the programs are watched (monitor/monitor.h) ----------- */

/* A program's times on one GPU. */
struct watched_gpu {
	struct pci_address pci;
	const char *why_unknown;           /* NULL: the times of this interval (watched_begin_interval) are known */
	bool is_presence;
	double span_ns, busy_ns, busy_error_ns, tpc_ns; /* of this interval */
	double waited_ns;                  /* of this interval: a lender's longest wait, at most (loans_wait) */
	double left_out_ns;                /* of this interval: the time in which the clocks were not known */
	/* Since the program is watched, without the time that is not known. */
	double all_span_ns, all_busy_ns, all_tpc_ns;
};

struct watched {
	pid_t pid;
	uint64_t started; /* as in struct process */
	uid_t user;
	struct monitor *look;
	char why[ERROR_MAX]; /* why `look` is NULL */
	bool was_taken;      /* of this interval */
	const char *why_unknown; /* for GPUs that are not in the list; NULL: the program has done nothing there */
	bool is_listed;      /* as of the last watched_follow */
	unsigned int gpu_count;
	struct watched_gpu gpus[MONITOR_GPUS];
	struct function_sums functions; /* since the program is watched */
	bool lends, borrows;
	struct loans *loans;            /* of a borrower; NULL: without memory */
	/* The launches of a lender with unknown waits. The first due_count waits can be known after the borrowers' next
	 * take. */
	struct loan_launch *launches;
	size_t launch_count, due_count;
};

/* Learns of each take. All zero: nobody. */
struct listener {
	void *context;
	bool (*wants)(const void *context, const struct process *process); /* whether to watch the process */
	void (*hear)(void *context, const struct watched *watched, const struct monitor_times *times);
};

/* All zero before the first use. */
struct watch_list {
	size_t count;
	struct watched *list;
	pid_t functions_of; /* 0: no program */
	size_t next;        /* the next program to take */
	bool misses_borrowers; /* some borrowers are not watched */
	struct listener listener;
	bool (*is_wanted)(void); /* whether urgent work interrupts a take; NULL: never */
};

/* Begins to watch new programs of the list, and ends the watch of gone programs. -1 with the reason, without memory. */
int watched_follow(struct watch_list *watched, const struct processes *processes, struct error *error);

/* Reads new times, without waiting for any program. To be called every MONITOR_TAKE_MS. */
void watched_take(struct watch_list *watched);

/* Begins a new interval. */
void watched_begin_interval(struct watch_list *watched);

/* NULL if the process is not watched, or has made no context on the GPU. */
const struct watched *watched_find(const struct watch_list *watched, const struct process *process);
const struct watched_gpu *watched_find_gpu(const struct watched *watched, struct pci_address pci);

/* Why the times of this interval are not known; NULL: known. */
const char *watched_why_unknown(const struct watched_gpu *gpu);

/* Ends the watch of all programs. */
void watched_end(struct watch_list *watched);

/* --- activity.c --------------------------------------------------------------------------------------------------- */

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
