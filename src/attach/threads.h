/*
 * Which thread of a process to borrow, and when.
 *
 * The borrowed thread loads a library: it takes the dynamic linker's locks, the allocator's, and the driver's. Other
 * threads go on and give up what they hold; only what the borrowed one holds itself would be waited for in vain. So it
 * must be one that holds none of them:
 *   - one that sleeps in a system call that nobody makes under such a lock, and that is no wait for one, or
 *   - one that is running outside of these libraries,
 * and that is in no signal handler that came in between. And nobody must be loading a library, which can take long.
 */
#ifndef NVTASKSET_ATTACH_THREADS_H
#define NVTASKSET_ATTACH_THREADS_H

#include "attach/machine.h"
#include "attach/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The threads that may be worth a try now, the best first: *threads is the caller's to free. Their number; 0 where none
 * is, or there is no memory. */
size_t threads_choose(const struct target *target, pid_t **threads);

/* Whether a stopped thread of this state can be borrowed. */
bool threads_may_borrow(const struct target *target, pid_t thread, const struct machine_state *state);

/* Whether the thread that its own process knows by this number is gone, or sleeps outside of the range. */
bool threads_is_outside(const struct target *target, uint64_t inner_id, const struct range *range);

/* Whether a call of the system can be made once more where it was broken off. */
bool threads_may_repeat(long call);

#endif
