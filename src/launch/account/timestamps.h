/*
 * While somebody looks (state/segment/lease.h), the GPU writes the end of each kernel (state/kernels/timestamps.h).
 *
 * For the end, a launch gets another release, in slot 1 of its descriptor, and a record of the kernel and the time of
 * the launch. Kernels of graphs: launch/graphs/timestamps.h.
 *
 * While nobody looks, launches are as fast as without: the question is asked only where launches are decided anew.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_TIMESTAMPS_H
#define NVTASKSET_LAUNCH_ACCOUNT_TIMESTAMPS_H

#include "driver/hook.h"
#include "state/kernels/timestamps.h"
#include "state/segment/segment.h"

#include <stdbool.h>

/* From here on, looks are announced in this segment. Only while no thread launches. */
void timestamps_use(const struct segment *segment);

/* From here on the process itself looks, or no more. */
void timestamps_want(bool wanted);

/* Whether somebody looks. In the launch path. */
bool timestamps_are_on(void);

/* The descriptor is about to be changed, for `tpcs` TPCs; 0: not known. If somebody looks, adds the release. Returns
 * whether somebody does. */
bool timestamps_of_launch(const struct launch *launch, unsigned int tpcs, struct qmd_change *change);

/* A stream's name in timestamps. The stream may be a stream of every context (driver/cuda.h). */
uint64_t timestamps_stream(const struct frame *frame, CUstream stream);

/* For graphs: whether a release can be added; has the function's name written, once; adds the release for `cell`. */
bool timestamps_can_write(const struct launch *launch);
void timestamps_write_name(struct timestamps *timestamps, CUfunction function);
void timestamps_write(const struct launch *launch, struct timestamps_cell cell, struct qmd_change *change);

#endif
