/*
 * The threads of a process, as /proc shows: the candidates for borrowing.
 */
#pragma once

#include "attach/target.h"

#include <sys/types.h>

/* Smaller ranks are better. */
enum thread_rank {
	RANK_WAITS,
	RANK_WAITS_IN_DRIVER, /* CUDA's threads, and threads that wait for the GPU: perhaps with a lock of the driver */
	RANK_RUNS,
	RANK_BREAKS_OFF, /* last: the call would end early if we died before the restart */
	RANK_NONE
};

struct thread_candidate {
	pid_t thread;
	enum thread_rank rank;
};

/* Lists the threads worth a try now, the best first; the caller frees *threads. Returns how many; 0 without memory. */
size_t threads_choose(const struct target *target, struct thread_candidate **threads);

/* -1 with the reason if filters of system calls keep us out of all threads (target_check_filters). */
int threads_check_filters(const struct target *target, struct error *error);

/* Whether the thread with the number in its own PID namespace has ended, or sleeps outside of the range. */
bool threads_is_outside(const struct target *target, uint64_t inner_id, const struct range *range);
