/*
 * --on-misfit fail: a launch fails if its blocks must run at once and the partition cannot hold them.
 *
 * A launch cannot be stopped in the launch callback, only in the API call that it comes from. There we make the call
 * ask for an empty grid, which the driver refuses, and replace its error by one that says what was wrong
 * (hardware.md). Without this option, such a launch gets more room (residency.h).
 */
#ifndef NVTASKSET_LAUNCH_SPACE_MISFIT_H
#define NVTASKSET_LAUNCH_SPACE_MISFIT_H

#include "driver/calls.h"

#include <stdbool.h>

#define MISFIT_ENVIRONMENT "NVTASKSET_ON_MISFIT"

/* Reads the environment. Call it before another thread can change that. */
void misfit_open(void);

/* Whether we must hear of this API call. */
bool misfit_wants_call(int id);

void misfit_call_begins(const struct call *call);
void misfit_call_ended(const struct call *call);

#endif
