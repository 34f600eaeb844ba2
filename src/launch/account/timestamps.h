/*
 * While somebody looks (state/segment/lease.h), the GPU writes when each kernel has ended
 * (state/kernels/timestamps.h).
 *
 * For this a launch gets another release, in slot 1 of its descriptor, and a record of what it is and when it was
 * launched. Kernels of graphs: launch/graphs/timestamps.h.
 *
 * While nobody looks, a launch is as fast as without this: what is said here is asked only where launches are decided
 * anew.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_TIMESTAMPS_H
#define NVTASKSET_LAUNCH_ACCOUNT_TIMESTAMPS_H

#include "driver/hook.h"
#include "state/kernels/timestamps.h"
#include "state/segment/segment.h"

#include <stdbool.h>

/* From here on, whoever looks says so in this segment. Only while no thread launches. */
void timestamps_use(const struct segment *segment);

/* From here on this process itself looks, or does no more. */
void timestamps_want(bool wanted);

/* Whether somebody looks. In the launch path. */
bool timestamps_are_on(void);

/* The launch's descriptor is about to be changed, for so many TPCs, 0 if that is not known: if somebody looks, this
 * adds the release. Whether somebody does. */
bool timestamps_of_launch(const struct launch *launch, unsigned int tpcs, struct qmd_change *change);

/* What timestamps call a stream, perhaps one that every context has (driver/cuda.h). */
uint64_t timestamps_stream(const struct frame *frame, CUstream stream);

/* For graphs: whether a release can be added; has the function's name written, once; adds the release, which writes to
 * this cell. */
bool timestamps_can_write(const struct launch *launch);
void timestamps_write_name(struct timestamps *timestamps, CUfunction function);
void timestamps_write(const struct launch *launch, struct timestamps_cell cell, struct qmd_change *change);

#endif
