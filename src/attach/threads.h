/*
 * The threads of a process, as /proc shows them: which of them may be borrowed.
 */
#ifndef NVTASKSET_ATTACH_THREADS_H
#define NVTASKSET_ATTACH_THREADS_H

#include "attach/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Lists the threads that are worth a try now, the best first; the caller frees *threads. Returns their number; 0 if
 * there are none, or no memory. */
size_t threads_choose(const struct target *target, pid_t **threads);

/* Whether the thread with this number in its own PID namespace has ended, or sleeps outside of the range. */
bool threads_is_outside(const struct target *target, uint64_t inner_id, const struct range *range);

#endif
