/*
 * System calls in which threads wait, holding nothing that loading needs, and which can be made again.
 */
#ifndef NVTASKSET_ATTACH_WAITS_H
#define NVTASKSET_ATTACH_WAITS_H

#include <stdbool.h>

/* Whether a call is one. `goes_on`: when we have stopped the thread in it, the kernel goes on with it by itself; else the call
 * is broken off, and is to be made once more. */
bool waits_include(long call, bool *goes_on);

#endif
