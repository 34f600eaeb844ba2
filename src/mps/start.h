/*
 * Starting MPS's control daemon.
 */
#ifndef NVTASKSET_MPS_START_H
#define NVTASKSET_MPS_START_H

#include "base/error.h"
#include "request.h"
#include "status.h"

/* The daemon that we start says so in its environment: no file of ours is left behind. */
#define START_SIGN "NVTASKSET_MPS=started"

/* Where none runs. Comes back when it answers, or another that somebody else has started meanwhile. -1 with the reason. */
int mps_start(const char *control, const struct mps_request *request, struct mps_status *status, struct error *error);

#endif
