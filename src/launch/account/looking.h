/*
 * While somebody looks (state/segment/lease.h), the GPU writes when each kernel has ended
 * (state/kernels/stamps.h).
 *
 * For this a launch gets another release, in slot 1 of its descriptor, and a record of what it is and when it was
 * launched. Kernels of graphs: launch/graphs/looking.h.
 *
 * While nobody looks, a launch is as fast as without this: what is said here is asked only where launches are decided
 * anew.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_LOOKING_H
#define NVTASKSET_LAUNCH_ACCOUNT_LOOKING_H

#include "driver/hook.h"
#include "state/kernels/stamps.h"
#include "state/segment/segment.h"

#include <stdbool.h>

/* From here on, whoever looks says so in this segment. Only while no thread launches. */
void looking_use(const struct segment *segment);

/* Whether somebody looks. In the launch path. */
bool looking_is_on(void);

/* The launch's descriptor is about to be changed, for so many TPCs, 0 if that is not known: if somebody looks, this adds the
 * release. Whether somebody does. */
bool looking_launch(const struct launch *launch, unsigned int tpcs, struct qmd_change *change);

/* What stamps call a stream, perhaps one that every context has (driver/cuda.h). */
uint64_t looking_stream(const struct frame *frame, CUstream stream);

/* Functions may have gone, and others may get their handles. */
void looking_functions_changed(void);

/* For graphs: whether a release can be added; has the function's name written, once; adds the release, which writes to this cell. */
bool looking_can_stamp(const struct launch *launch);
void looking_name(struct stamps *stamps, CUfunction function);
void looking_stamp(const struct launch *launch, struct stamps_cell cell, struct qmd_change *change);

#endif
