/*
 * The threads of a process, as /proc shows them: which may be worth borrowing.
 */
#ifndef NVTASKSET_ATTACH_THREADS_H
#define NVTASKSET_ATTACH_THREADS_H

#include "attach/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The threads that may be worth a try now, the best first: *threads is the caller's to free. Their number; 0 where none
 * is, or there is no memory. */
size_t threads_choose(const struct target *target, pid_t **threads);

/* Whether the thread that its own process knows by this number is gone, or sleeps outside of the range. */
bool threads_is_outside(const struct target *target, uint64_t inner_id, const struct range *range);

#endif
