/*
 * The times of programs, measured as long as the programs are watched (monitor/monitor.h).
 */
#ifndef NVTASKSET_WATCHED_H
#define NVTASKSET_WATCHED_H

#include "monitor/function_sums.h"
#include "monitor/loans.h"
#include "processes.h"

#include <stdbool.h>
#include <stdint.h>

/* A program's times on one GPU. */
struct watched_gpu {
	struct pci_address pci;
	const char *why_unknown;           /* NULL: the times since watched_begin are known */
	bool is_presence;
	double span_ns, busy_ns, busy_error_ns, tpc_ns; /* since watched_begin */
	double waited_ns;                  /* since watched_begin: a lender's longest wait, at most (monitor/loans.h) */
	double left_out_ns;                /* since watched_begin: the time in which the clocks were not known */
	/* Since the begin of watching, without the time that is not known. */
	double all_span_ns, all_busy_ns, all_tpc_ns;
};

struct watched {
	pid_t pid;
	uint64_t started; /* as in struct process */
	uid_t user;
	struct monitor *look;
	char why[ERROR_MAX]; /* why `look` is NULL */
	bool was_taken;      /* since watched_begin */
	const char *why_unknown; /* for GPUs that are not in the list; NULL: the program has done nothing there */
	bool is_listed;      /* as of the last watched_follow */
	unsigned int gpu_count;
	struct watched_gpu gpus[MONITOR_GPUS];
	struct function_sums functions; /* since the begin of watching */
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
void watched_begin(struct watch_list *watched);

/* NULL if the process is not watched, or has made no context on the GPU. */
const struct watched *watched_find(const struct watch_list *watched, const struct process *process);
const struct watched_gpu *watched_find_gpu(const struct watched *watched, struct pci_address pci);

/* Why the times since watched_begin are not known; NULL: known. */
const char *watched_why_unknown(const struct watched_gpu *gpu);

/* Ends the watch of all programs. */
void watched_end(struct watch_list *watched);

#endif
