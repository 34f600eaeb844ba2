/*
 * The partition of a process without a segment of its own yet: the parent's current partition, as with CPU affinity,
 * and not the partition at the parent's start.
 *
 * Read from, in this order:
 *   1. the segment whose descriptor the process has inherited;
 *   2. if the descriptor was closed on the way, or the owner has moved to a new segment: the segment of the nearest
 *      ancestor with a segment. The search ends with the process that got the partition from nvtaskset (NVTASKSET_PID);
 *   3. the environment.
 *
 * The process is then in the group of the segment (state/group/group.h). Without a segment, the group is that of an
 * inherited descriptor. The file named by the environment (NVTASKSET_GROUP_FILE) comes before both.
 */
#ifndef NVTASKSET_SHIM_INHERIT_H
#define NVTASKSET_SHIM_INHERIT_H

#include "base/error.h"
#include "state/segment/segment.h"

struct inheritance {
	struct segment_revision revision;
	struct group group; /* none, or for the caller to close */
	int descriptor;     /* names the group */
};

/* Reads the environment: before another thread can change it, and not in a program with more privileges than its user.
 * If the partition may not be the parent's current partition, a line on standard error says so, or with --strict the
 * program ends. -1 with the reason if the environment has no valid partition. */
int inherit_partition(struct inheritance *inheritance, struct error *error);

#endif
