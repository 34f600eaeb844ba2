/*
 * When a thread of a process can be borrowed.
 *
 * The borrowed thread loads a library: it takes the dynamic linker's locks, the allocator's, and the driver's. Other
 * threads go on and give up what they hold; only what the borrowed one holds itself would be waited for in vain. So it
 * must be one that holds none of them:
 *   - one that sleeps in a system call that nobody makes under such a lock, and that is no wait for one, or
 *   - one that is running outside of these libraries,
 * and that is in no signal handler that came in between. And nobody must be loading a library, which can take long.
 */
#ifndef NVTASKSET_ATTACH_MOMENT_H
#define NVTASKSET_ATTACH_MOMENT_H

#include "attach/machine.h"
#include "attach/target.h"

#include <stdbool.h>
#include <sys/types.h>

/* Whether a stopped thread of this state can be borrowed. */
bool moment_is_good(const struct target *target, pid_t thread, const struct machine_state *state);

/* Whether some thread is in the dynamic linker, or in a library that it is just starting. */
bool moment_loader_is_busy(const struct target *target);

#endif
