/*
 * Which GPU a context belongs to: a table that any thread reads and writes without waiting.
 *
 * It remembers as many contexts as it has room for; one that is not found is asked for again, at the cost
 * of two driver calls. Used from the launch path, when a thread launches on another context than before.
 */
#ifndef NVTASKSET_DRIVER_CONTEXTS_H
#define NVTASKSET_DRIVER_CONTEXTS_H

#include "cuda.h"

struct gpu;

/* NULL where it is not known. */
struct gpu *contexts_find(CUcontext context);

void contexts_remember(CUcontext context, struct gpu *gpu);
void contexts_forget(CUcontext context);

#endif
