/*
 * Becoming a client of NVIDIA MPS, which lets kernels of several processes run at the same time. For the command
 * only, never for the shim.
 */
#ifndef NVTASKSET_MPS_CLIENT_H
#define NVTASKSET_MPS_CLIENT_H

#include "base/error.h"
#include "look.h"

#include <stdint.h>

#define MPS_PRIORITY_ENVIRONMENT "CUDA_MPS_CLIENT_PRIORITY"

/* Makes MPS ready for one more client, as `request` says, and sets what the client needs in this process's environment
 * (CUDA_DEVICE_MAX_CONNECTIONS and CUDA_MPS_CLIENT_PRIORITY, and CUDA_MPS_PIPE_DIRECTORY for MPS_OFF): call it just before
 * the exec. -1 with the reason: not found, not permitted, no answer, full. Never hangs: every question to the daemon has a
 * time limit. */
int mps_prepare(const struct mps_request *request, struct mps_status *status, struct error *error);

/* The variable by which somebody has MPS limit the SMs of clients of this environment; NULL: there is none. */
const char *mps_limit_given(void);

#define MPS_MEMORY_ENVIRONMENT "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"

/* Limits the GPU memory that a client of MPS allocates on each of these GPUs, by their numbers in CUDA. The client reads it when it
 * starts CUDA, and MPS sees to it: allocations beyond it fail with CUDA_ERROR_OUT_OF_MEMORY. Sets it in this process's environment;
 * limits of other GPUs that are there stay. -1 with the reason. */
int mps_limit_memory(const int *gpus, unsigned int count, uint64_t mebibytes, struct error *error);

#endif
