/*
 * The partition that a process starts with that has no segment of its own: its parent's of now, as with taskset's affinity,
 * not the one that its parent was started with.
 *
 * The descriptor that it has from its parent says which. Where it was closed on the way, the nearest ancestor that has a
 * segment says, up to and with the process that nvtaskset gave the partition to, which the environment names; and where
 * none can be asked, the environment.
 */
#ifndef NVTASKSET_SHIM_INHERIT_H
#define NVTASKSET_SHIM_INHERIT_H

#include "base/error.h"
#include "state/segment.h"

/* Reads the environment: before any other thread can change it. Not for a program with more privileges than its user. A line
 * says where it may not be the parent's of now; with --strict the program ends there. -1 with the reason where what stands
 * in the environment is no partition. */
int inherit_partition(struct segment_revision *revision, struct error *error);

#endif
