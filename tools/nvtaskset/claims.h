/*
 * Which TPCs programs have: for choosing ones that nobody has.
 *
 * A program has a segment from before nvtaskset becomes it, and what it starts shares that or has one of its own. One that
 * has closed all its descriptors before it came to CUDA will begin with what its ancestors' say, or else its environment:
 * that counts, too.
 */
#ifndef NVTASKSET_OCCUPIED_H
#define NVTASKSET_OCCUPIED_H

#include "ancestry.h"
#include "base/error.h"
#include "gpu/topology/topology.h"
#include "state/segment.h"

/* What all processes that this user may look at have, a set for each GPU; but not those in `except` (NULL: all count).
 * A partition of a whole GPU keeps nobody away, and does not count. -1 with the reason. */
int claims_find(struct segment_revision *occupied, const struct topology_list *list, const struct pids *except,
                  struct error *error);

#endif
