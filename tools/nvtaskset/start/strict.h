/*
 * --strict: checks before COMMAND is started whether every promise can be kept on these GPUs.
 */
#ifndef NVTASKSET_STRICT_H
#define NVTASKSET_STRICT_H

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "state/segment/segment.h"

/* Checks the GPUs of the partition. 0, or -1 with the reason. */
int strict_check_gpus(const struct segment_revision *revision, const struct topology_list *list,
                      struct error *error);

#endif
