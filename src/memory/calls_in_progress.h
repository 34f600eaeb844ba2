/*
 * Calls that change memory, in all threads: between their begin and their end, what is written down and what the driver
 * has may differ.
 */
#ifndef NVTASKSET_MEMORY_CALLS_IN_PROGRESS_H
#define NVTASKSET_MEMORY_CALLS_IN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* One begins on this thread, and has ended. */
void memory_call_is_in_progress(bool begins);

/* Whether no other thread is in one. `number`: another one after each call. */
bool memory_is_quiet(uint64_t *number);

/* In the child of a fork, there is this thread only. */
void calls_in_progress_after_fork(void);

#endif
