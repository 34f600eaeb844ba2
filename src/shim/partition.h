/*
 * The first decider: where the partition lets a launch run.
 *
 * The partition is compiled for each GPU when it is first needed after an edit; other launches copy what was compiled.
 */
#ifndef NVTASKSET_SHIM_PARTITION_H
#define NVTASKSET_SHIM_PARTITION_H

#include "decision.h"
#include "driver/hook.h"
#include "state/segment.h"

/* From here on, launches obey this segment. Not while launches are going on: at the start, and in the child of a fork, which
 * gets a segment of its own. */
void partition_use(const struct segment *segment);

/* Decides all of it. A launch on a GPU that is not known (NULL) is unrestricted. */
void partition_decide(const struct launch *launch, struct decision *decision);

#endif
