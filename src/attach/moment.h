/*
 * Whether this is a moment at which a thread can be borrowed.
 *
 * The borrowed thread loads a library, so it takes locks of the dynamic linker, the allocator and the driver. Other
 * threads continue and release what they hold; but a lock that the borrowed thread itself holds would never be
 * released. So the thread must hold none of them. It must
 *   - sleep in a system call that nobody makes under such a lock, and that does not wait for one, or
 *   - run outside of these libraries,
 * and must not be in a signal handler that interrupted such code. Also, no thread may be loading a library, since
 * that can take long.
 */
#ifndef NVTASKSET_ATTACH_MOMENT_H
#define NVTASKSET_ATTACH_MOMENT_H

#include "attach/machine.h"
#include "attach/target.h"

#include <stdbool.h>
#include <sys/types.h>

/* Whether a stopped thread of this state can be borrowed. */
bool moment_is_good(const struct target *target, pid_t thread, const struct machine_state *state);

/* Whether some thread is in the dynamic linker, or in a library that the dynamic linker is just initializing. */
bool moment_loader_is_busy(const struct target *target);

/* Whether a thread waits in this system call while it holds no lock that loading needs, and the call can be made again. `goes_on`
 * says that after our stop the kernel continues it by itself; otherwise the call fails, and has to be made once more. */
bool moment_is_wait(long call, bool *goes_on);

#endif
