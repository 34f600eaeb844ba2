/*
 * Becoming a client of NVIDIA MPS: kernels of several processes run at the same time. For the command only, never for
 * the shim.
 */
#pragma once

#include "base/error.h"
#include "look.h"

#include <stdint.h>

#define MPS_PRIORITY_ENVIRONMENT "CUDA_MPS_CLIENT_PRIORITY"

/* Makes MPS ready for one more client by `request`, and sets the client's variables in this process's environment
 * (CUDA_DEVICE_MAX_CONNECTIONS and CUDA_MPS_CLIENT_PRIORITY, and CUDA_MPS_PIPE_DIRECTORY for MPS_OFF): call just before
 * the exec. -1 with the reason: not found, not permitted, no answer, full. Never hangs: each question to the daemon has
 * a time limit. */
int mps_prepare(const struct mps_request *request, struct mps_status *status, struct error *error);

/* The variable of this environment by which MPS limits a client's SMs; NULL without a limit. */
const char *mps_limit_given(void);
