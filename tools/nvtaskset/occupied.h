/*
 * Which TPCs programs have: for choosing ones that nobody has.
 *
 * A program has a partition from the moment that nvtaskset becomes it, long before it uses CUDA. Until it has a segment,
 * its environment says which; and since nvtaskset holds the lock until that environment is in place, two that choose at
 * the same time see each other.
 */
#ifndef NVTASKSET_OCCUPIED_H
#define NVTASKSET_OCCUPIED_H

#include "ancestry.h"
#include "error.h"
#include "segment.h"
#include "topology/topology.h"

/* Keeps every other nvtaskset of this machine (of this network namespace) from choosing until this process ends or
 * becomes another program. Waits a bounded time; -1 with the reason. Once in a process. */
int occupied_lock(struct error *error);

/* What all processes that this user may look at have, a set for each GPU; but not those in `except` (NULL: all count).
 * A partition of a whole GPU keeps nobody away, and does not count. -1 with the reason. */
int occupied_find(struct segment_revision *occupied, const struct topology_list *list, const struct pids *except,
                  struct error *error);

#endif
