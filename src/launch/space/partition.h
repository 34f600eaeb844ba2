/*
 * The first decider: the TPCs of the partition.
 *
 * After an edit, the first launch on a GPU compiles the partition for the GPU; later launches copy the result.
 */
#pragma once

#include "decision.h"
#include "driver/gpus.h"
#include "driver/hook.h"
#include "state/segment/segment.h"

/* From here on, launches obey the segment. Only while no thread launches: at the start, and in the child of a fork,
 * which has a segment of its own. */
void partition_use(const struct segment *segment);

/* Fills all of the decision. */
void partition_decide(const struct launch *launch, struct decision *decision);

/* The TPCs for launches on the GPU now, for calls other than the launch itself; all without a restriction. The GPU's
 * topology must be known. */
struct tpcset partition_on(const struct gpu *gpu);
