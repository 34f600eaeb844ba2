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

#endif
