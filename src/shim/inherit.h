/*
 * The partition that this process starts with: a child that runs another program has its parent's of now, as with
 * taskset's affinity, not the one that its parent was started with.
 *
 * nvtaskset says in the environment which partition, and which process it gave it to. In that very process the
 * environment holds. Elsewhere the nearest ancestor that has a segment says, up to and with that process: a shell between
 * them has none.
 */
#ifndef NVTASKSET_SHIM_INHERIT_H
#define NVTASKSET_SHIM_INHERIT_H

#include "error.h"
#include "segment.h"

#define INHERIT_ENVIRONMENT "NVTASKSET_PID"

/* Reads the environment: before any other thread can change it. -1 with the reason where what stands there is no
 * partition. */
int inherit_partition(struct segment_revision *revision, struct error *error);

#endif
