/*
 * Launches whose blocks must run at once, seen when the program asks for them.
 *
 * Their descriptors tell from Hopper on (qmd.h); before it, only the call does, so its thread remembers what was asked
 * for until the descriptor comes. And only a call can be made to fail, for --on-misfit fail: the driver is given a launch
 * that it refuses, and the program an error that says what was wrong (docs/hardware.md).
 */
#ifndef NVTASKSET_SHIM_MISFIT_H
#define NVTASKSET_SHIM_MISFIT_H

#include "driver/calls.h"
#include "qmd.h"
#include "segment.h"

#include <stdbool.h>

#define MISFIT_ENVIRONMENT "NVTASKSET_ON_MISFIT"

/* Reads the environment: before any other thread can change it. */
void misfit_open(void);

/* Before any call comes. */
void misfit_use(const struct segment *segment);

/* Whether we must hear of a call of the driver: from the start, or
 * once a GPU is used whose descriptors do not tell. */
bool misfit_wants_call(int id);
bool misfit_wants_call_before_hopper(int id);

void misfit_call_begins(const struct call *call);
void misfit_call_ended(const struct call *call);

/* Blocks of a cooperative launch that this thread is in the middle of; 0 otherwise. In the static block of thread-local
 * storage: the launch path reads it. */
extern __thread unsigned int misfit_cooperative __attribute__((tls_model("initial-exec")));

/* What that launch needs. */
struct qmd_shape misfit_shape(void);

#endif
