/* GPUs on which no launch can leave its program's partition. */
#pragma once

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "state/segment/segment.h"

/* -1 with the first GPU of the partition on which --strict refuses programs, and why. */
int strict_check_gpus(const struct segment_revision *revision, const struct topology_list *list, struct error *error);
