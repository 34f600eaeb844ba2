/* --attach: a partition for processes that were started without nvtaskset. */
#ifndef NVTASKSET_ACTIONS_ATTACHING_H
#define NVTASKSET_ACTIONS_ATTACHING_H

#include "base/error.h"
#include "base/pids.h"

#include <stdbool.h>

struct topology_list;

/* Loads our library into each process that uses CUDA without, and passes on the topologies in `list`. The process then
 * has a segment, and the whole of each GPU until a change. A process without CUDA that shares its parent's segment gets
 * a segment of its own. The remaining processes stay as they are. With `verbose`, prints the time of each on standard
 * error. -1 with the reason. */
int attach_processes(const struct pids *pids, const struct topology_list *list, bool verbose, struct error *error);

#endif
