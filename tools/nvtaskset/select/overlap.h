/* TPCs of a new partition that a second program has already. Often the user has made a mistake. */
#pragma once

#include "base/pids.h"
#include "gpu/topology/topology.h"
#include "state/group/group.h"
#include "state/segment/segment.h"

/* Prints a line on standard error that names a program with some of the same TPCs. Prints nothing where sharing is
 * meant: for a program with the whole GPU or a setting of time, and for programs that take turns (without MPS). The
 * processes `own` have the new partition: the ancestors, descendants and group of `own` do not count. Looks at the
 * latest thousand processes. */
void overlap_report(const struct segment_revision *revision, const struct pids *own, struct group_identity group,
                    const struct topology_list *list);
