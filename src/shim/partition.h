/*
 * Partition and launch descriptor in, descriptor out.
 *
 * enforce_launch is the launch path: no lock, no allocation, no system call, nothing but a look at two numbers while the
 * partition stays the same. Launches of graphs, those under masks of the program's own, those whose blocks must run at once,
 * and the first of a thread, on a context, after a change, or in a special call, do more.
 */
#ifndef NVTASKSET_SHIM_PARTITION_H
#define NVTASKSET_SHIM_PARTITION_H

#include "driver/cuda.h"
#include "driver/hook.h"
#include "segment.h"

/* From here on, launches obey this segment. Not while launches are going on: at the start, and in the child
 * of a fork, which gets a segment of its own. */
void enforce_use(const struct segment *segment);

/* From here on, a thread that ends gives up where it counts its launches. Once, when this library stays for good. */
void enforce_follow_threads(void);

/* The program has masks of its own from now on (app_masks.h): launches look for them. */
void enforce_anew(void);

/* A kernel is about to be uploaded, on the launching thread. */
void enforce_launch(const struct hook_launch *launch);

/* A call of the driver begins on this thread, of those that can make launches special (graphs.h, misfit.h, app_masks.h). */
void enforce_call_begins(void);

void enforce_context_created(CUcontext context);
void enforce_context_destroyed(CUcontext context);

#endif
