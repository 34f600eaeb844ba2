/*
 * A limit for the GPU memory that a client of MPS allocates. The client reads it when it starts CUDA, and MPS sees to it:
 * allocations beyond it fail with CUDA_ERROR_OUT_OF_MEMORY.
 */
#ifndef NVTASKSET_MPS_MEMORY_H
#define NVTASKSET_MPS_MEMORY_H

#include "base/error.h"

#include <stdint.h>

#define MPS_MEMORY_ENVIRONMENT "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"

/* Sets the limit in this process's environment, on each of these GPUs, by their numbers in CUDA. Limits of other
 * GPUs that are there stay. -1 with the reason. */
int mps_limit_memory(const int *gpus, unsigned int count, uint64_t mebibytes, struct error *error);

#endif
