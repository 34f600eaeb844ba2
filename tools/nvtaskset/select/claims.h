/*
 * Which TPCs are in use, so that others can be selected.
 *
 * Most programs have a segment: nvtaskset makes it before it executes them, and their children share it or have their
 * own. A program that has closed all its descriptors before it uses CUDA has none. It will get the partition of the
 * nearest ancestor with a segment, or the one in its environment. These TPCs are claimed too.
 */
#ifndef NVTASKSET_SELECT_CLAIMS_H
#define NVTASKSET_SELECT_CLAIMS_H

#include "base/error.h"
#include "base/pids.h"
#include "gpu/topology/topology.h"
#include "state/segment/segment.h"

/* What of a GPU may be chosen. All NULL: everything. */
struct set_limits {
	const struct pids *except;             /* the TPCs of these processes count as free (-n) */
	const struct group *group;             /* and those of the processes of this group that have all of its partition */
	const struct segment_revision *taken;  /* these do not, although no process may have them (-n) */
	const struct segment_revision *room;   /* so much there is of the GPUs that it names, instead of the whole GPU */
};

/* Finds the TPCs of all processes that this user may examine, except of those that `limits` names: a set for each GPU of
 * `list`. A partition that is the whole GPU claims nothing. -1 with the reason. */
int claims_find(struct segment_revision *occupied, const struct topology_list *list, const struct set_limits *limits,
                struct error *error);

#endif
