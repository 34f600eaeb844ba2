/* On which GPUs programs can be kept inside their partitions whatever they launch. */
#ifndef NVTASKSET_STRICT_H
#define NVTASKSET_STRICT_H

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "state/segment/segment.h"

/* -1 with the first of these GPUs on which --strict starts nothing, and why. */
int strict_check_gpus(const struct segment_revision *revision, const struct topology_list *list, struct error *error);

#endif
