/*
 * Says in the segment how good predictions were (state/predictions.h), so that others can show it: of each function with all
 * of its grids and partitions, and of each instance of a graph.
 *
 * Our thread (presence_thread.h), when it begins and then at most ten times a second: it looks through the whole history.
 */
#ifndef NVTASKSET_SHIM_PREDICTION_TELL_H
#define NVTASKSET_SHIM_PREDICTION_TELL_H

#include "prediction.h"
#include "state/segment.h"

void prediction_tell(const struct segment *segment, const struct prediction_history *history);

#endif
