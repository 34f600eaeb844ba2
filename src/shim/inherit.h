/*
 * The partition of a process that has no segment of its own yet: its parent's current one, as with CPU affinity, not
 * the one that its parent was started with.
 *
 * It is read from, in this order:
 *   1. the segment whose descriptor the process has inherited;
 *   2. if that descriptor was closed on the way, or its owner has moved to a new segment: the segment of the nearest
 *      ancestor that has one. The search ends with the process that nvtaskset gave the partition to (NVTASKSET_PID);
 *   3. the environment.
 *
 * The process is then in the group of the segment that was read (state/group/group.h). If no segment was found, its
 * group is the one that it has inherited a descriptor of. The file that the environment names (NVTASKSET_GROUP_FILE)
 * comes before both.
 */
#ifndef NVTASKSET_SHIM_INHERIT_H
#define NVTASKSET_SHIM_INHERIT_H

#include "base/error.h"
#include "state/segment/segment.h"

struct inheritance {
	struct segment_revision revision;
	struct group group; /* none, or it is the caller's to close */
	int descriptor;     /* that names the group */
};

/* Reads the environment: call it before another thread can change that, and not in a program with more privileges than
 * its user. If the partition may not be the parent's current one, a line on standard error says so, or with --strict
 * the program ends. -1 with the reason if the environment has no valid partition. */
int inherit_partition(struct inheritance *inheritance, struct error *error);

#endif
