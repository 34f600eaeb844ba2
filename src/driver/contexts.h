/*
 * Which GPU a context belongs to: a table that any thread reads and writes without waiting.
 *
 * When the table is full, new contexts are not remembered, and the driver is asked again each time: three to five
 * calls. The launch path looks here when a thread launches on another context than before.
 */
#ifndef NVTASKSET_DRIVER_CONTEXTS_H
#define NVTASKSET_DRIVER_CONTEXTS_H

#include "cuda.h"

struct gpu;

/* NULL if the table does not have it. */
struct gpu *contexts_find(CUcontext context);

void contexts_remember(CUcontext context, struct gpu *gpu);
void contexts_forget(CUcontext context);

#endif
