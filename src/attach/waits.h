/*
 * System calls in which a thread waits while it holds no lock that loading needs, and which can be made again.
 */
#ifndef NVTASKSET_ATTACH_WAITS_H
#define NVTASKSET_ATTACH_WAITS_H

#include <stdbool.h>

/* Whether `call` is such a call. `goes_on` says that after our stop the kernel continues it by itself; otherwise the
 * call fails, and has to be made once more. */
bool waits_include(long call, bool *goes_on);

#endif
