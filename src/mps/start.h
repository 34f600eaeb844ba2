/*
 * Starting MPS's control daemon.
 */
#ifndef NVTASKSET_MPS_START_H
#define NVTASKSET_MPS_START_H

#include "base/error.h"
#include "request.h"
#include "status.h"

/* A variable in the environment of daemons that we start, by which they are recognized: we leave no file behind. */
#define START_SIGN "NVTASKSET_MPS=started"

/* Starts a daemon if none runs. Returns when it answers, or another one that somebody else has started meanwhile. -1
 * with the reason. */
int mps_start(const char *control, const struct mps_request *request, struct mps_status *status, struct error *error);

#endif
