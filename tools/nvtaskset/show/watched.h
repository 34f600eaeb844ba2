/*
 * The times of programs, which are measured as long as they are watched (monitor/monitor.h).
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
	const char *why_unknown;           /* NULL: those since watched_begin are known */
	bool is_presence;
	double span_ns, busy_ns, busy_error_ns, tpc_ns; /* since watched_begin */
	double waited_ns;                  /* the same: a lender's longest wait, at most (monitor/loans.h) */
	double left_out_ns;                /* the same, while the clocks were not known */
	/* The same since it is watched; what is not known is left out. */
	double all_span_ns, all_busy_ns, all_tpc_ns;
};

struct watched {
	pid_t pid;
	uint64_t started; /* as in struct process */
	uid_t user;
	struct monitor *look;
	char why[ERROR_MAX]; /* why it cannot be looked at, if look is NULL */
	bool was_taken;      /* since watched_begin */
	const char *why_unknown; /* on GPUs that are not in the list; NULL: it has done nothing there */
	bool is_listed;      /* as of the last watched_follow */
	unsigned int gpu_count;
	struct watched_gpu gpus[MONITOR_GPUS];
	struct function_sums functions; /* since it is watched */
	bool lends, borrows;
	struct loans *loans;            /* of a borrower; NULL: there was no memory */
	struct monitor_kernel *launches;   /* of a lender: whose waits are not known yet, */
	size_t launch_count, due_count; /* and those of them whose waits can be known after the next take of the borrowers */
};

/* Initially all zero. */
struct watch_list {
	size_t count;
	struct watched *list;
	pid_t functions_of; /* 0: of no program */
	size_t next;        /* to be taken */
	bool misses_borrowers; /* some are not watched */
	bool (*is_wanted)(void); /* whether something else is to be done before the rest of a take; NULL: nothing is */
};

/* Begins to watch programs that are new in the list, and ends it for those that are not there any more. -1 with the reason if
 * there is no memory. */
int watched_follow(struct watch_list *watched, const struct processes *processes, struct error *error);

/* Reads what came, without waiting for any program. To be called every MONITOR_TAKE_MS. */
void watched_take(struct watch_list *watched);

/* From here on, times are those of a new interval. */
void watched_begin(struct watch_list *watched);

/* NULL if the process is not watched; if it has made no context on the GPU. */
const struct watched *watched_find(const struct watch_list *watched, const struct process *process);
const struct watched_gpu *watched_find_gpu(const struct watched *watched, struct pci_address pci);

/* Why its times since watched_begin are not known; NULL where they are. */
const char *watched_why_unknown(const struct watched_gpu *gpu);

/* Ends it for all. */
void watched_end(struct watch_list *watched);

#endif
