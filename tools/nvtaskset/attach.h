/*
 * --attach: a partition for processes that were started without nvtaskset.
 */
#ifndef NVTASKSET_ATTACH_H
#define NVTASKSET_ATTACH_H

#include "ancestry.h"
#include "base/error.h"
#include "gpu/topology/topology.h"

#include <stdbool.h>

/* Loads our library into each of the processes that uses CUDA without it, and tells it of the GPUs: it then has a segment,
 * and the whole of each GPU until somebody edits it. The others stay as they are. With `verbose` it is told on standard
 * error how long that took. -1 with the reason. */
int attach_family(const struct pids *family, const struct topology_list *list, bool verbose, struct error *error);

#endif
