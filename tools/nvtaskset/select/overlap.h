/* TPCs of a new partition that a second program has already. Often the user has made a mistake. */
#pragma once

#include "base/pids.h"
#include "gpu/topology/topology.h"
#include "state/group/group.h"
#include "state/segment/segment.h"

/* Prints a line on standard error that names a program with some of the same TPCs. The user means to share TPCs where a
 * program has the whole GPU, or a part of the time; and without MPS, programs take turns. The processes `own` have the
 * new partition: the ancestors, descendants and group of `own` do not count. Looks at the latest thousand processes. */
void overlap_report(const struct segment_revision *revision, const struct pids *own, struct group_identity group,
                    const struct topology_list *list);
