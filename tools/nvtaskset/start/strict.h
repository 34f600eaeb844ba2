/*
 * --strict, before COMMAND is started: whether every promise can be kept for these GPUs, this program and this driver.
 */
#ifndef NVTASKSET_STRICT_H
#define NVTASKSET_STRICT_H

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "state/segment.h"

/* The GPUs of the partition. */
int strict_check_gpus(const struct segment_revision *revision, const struct topology_list *list,
                      struct error *error);

#endif
