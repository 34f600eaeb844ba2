/*
 * Inspecting and stopping MPS's control daemon.
 */
#ifndef NVTASKSET_MPS_DAEMON_H
#define NVTASKSET_MPS_DAEMON_H

#include "base/error.h"
#include "request.h"
#include "status.h"

/* Inspects MPS, and changes nothing. -1 with the reason, also if no daemon runs. */
int mps_inspect(const struct mps_request *request, struct mps_status *status, struct error *error);

/* Stops a control daemon that mps_prepare started and that nobody uses. With `force`, stops any daemon, and its
 * clients' calls fail. `status` gets what was found. -1 with the reason. */
int mps_stop(bool force, struct mps_status *status, struct error *error);

#endif
