/*
 * The priority of a client of MPS, of which there are two. The client reads it when it starts CUDA; it acts between blocks of
 * kernels that want the same SMs (docs/facts.md), and cannot be changed later. Streams' own priorities count inside of each.
 */
#ifndef NVTASKSET_MPS_PRIORITY_H
#define NVTASKSET_MPS_PRIORITY_H

#include "base/error.h"

#include <stdbool.h>

#define MPS_PRIORITY_ENVIRONMENT "CUDA_MPS_CLIENT_PRIORITY"

/* Sets in this process's environment whether it is behind usual clients. -1 with the reason. */
int mps_set_priority(bool is_lower, struct error *error);

#endif
