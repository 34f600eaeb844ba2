/*
 * --on-misfit fail: a launch whose blocks must run at once, and that the partition cannot hold, fails.
 *
 * Only a call can be made to fail: the driver is given a launch that it refuses, and the program an error that says what was
 * wrong (docs/hardware.md). Without this, such launches are given more room (residency.h).
 */
#ifndef NVTASKSET_SHIM_MISFIT_H
#define NVTASKSET_SHIM_MISFIT_H

#include "driver/calls.h"

#include <stdbool.h>

#define MISFIT_ENVIRONMENT "NVTASKSET_ON_MISFIT"

/* Reads the environment: before any other thread can change it. */
void misfit_open(void);

/* Whether we must hear of a call of the driver. */
bool misfit_wants_call(int id);

void misfit_call_begins(const struct call *call);
void misfit_call_ended(const struct call *call);

#endif
