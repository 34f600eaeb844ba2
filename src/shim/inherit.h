/*
 * The partition of a process that has no segment of its own yet: its parent's current one, as with CPU affinity, not
 * the one that its parent was started with.
 *
 * It is read from, in this order:
 *   1. the segment whose descriptor the process has inherited;
 *   2. if that descriptor was closed on the way, or its owner has moved to a new segment: the segment of the nearest
 *      ancestor that has one. The search ends with the process that nvtaskset gave the partition to (NVTASKSET_PID);
 *   3. the environment.
 */
#ifndef NVTASKSET_SHIM_INHERIT_H
#define NVTASKSET_SHIM_INHERIT_H

#include "base/error.h"
#include "state/segment.h"

/* Reads the environment: call it before another thread can change that, and not in a program with more privileges than
 * its user. If the partition may not be the parent's current one, a line on standard error says so, or with --strict
 * the program ends. -1 with the reason if the environment has no valid partition. */
int inherit_partition(struct segment_revision *revision, struct error *error);

#endif
