/* TPCs that a new partition shares with another program's. Often that is a mistake. */
#ifndef NVTASKSET_SELECT_OVERLAP_H
#define NVTASKSET_SELECT_OVERLAP_H

#include "base/pids.h"
#include "gpu/topology/topology.h"
#include "state/group/group.h"
#include "state/segment/segment.h"

/* Prints a line on standard error that names a program with some of the same TPCs. It is meant where one of the two has the
 * whole GPU, or is given something of the time; and programs that take turns, without MPS, have all TPCs in their turn. The
 * program's own processes, the processes that these descend from or have started, and its group do not count. Looks at the
 * latest thousand processes. */
void overlap_report(const struct segment_revision *revision, const struct pids *own, struct group_identity group,
                    const struct topology_list *list);

#endif
