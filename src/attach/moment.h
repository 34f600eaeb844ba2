/*
 * Whether a thread can be borrowed at the moment.
 *
 * The borrowed thread loads a library, and so takes locks of the dynamic linker, the allocator and the driver. Other
 * threads continue and release their locks; but a lock of the borrowed thread itself would never be released. So the
 * thread must hold no lock of loading. The thread must
 *   - sleep in a system call that is never made under such a lock, and does not wait for one, or
 *   - run outside of the libraries with the locks,
 * and must not be in a signal handler that interrupted either. Also, no thread may be loading a library: loading can
 * take long.
 */
#pragma once

#include "attach/machine.h"
#include "attach/target.h"

#include <sys/types.h>

/* Whether a stopped thread of the state can be borrowed. */
bool moment_is_good(const struct target *target, pid_t thread, const struct machine_state *state);

/* Whether a thread is in the dynamic linker, or in a library that the dynamic linker is just initializing. */
bool moment_loader_is_busy(const struct target *target);

/* Whether a thread that waits in the system call holds no lock of loading, and the call can be made again. `goes_on`:
 * after our stop the kernel continues the call by itself; otherwise the call fails, and has to be made once more. */
bool moment_is_wait(long call, bool *goes_on);
