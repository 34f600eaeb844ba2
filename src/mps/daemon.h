/* Starting, inspecting and stopping MPS's control daemon. */
#pragma once

#include "base/error.h"
#include "look.h"

/* A variable in the environment marks the daemons that we start: no file is left behind. */
#define START_SIGN "NVTASKSET_MPS=started"

/* Starts a daemon if none runs. Returns when the daemon, or a daemon started by another process meanwhile, answers. -1
 * with the reason. */
int mps_start(const char *control, const struct mps_request *request, struct mps_status *status, struct error *error);

/* Inspects MPS without changes. -1 with the reason, also without a running daemon. */
int mps_inspect(const struct mps_request *request, struct mps_status *status, struct error *error);

/* Stops an unused control daemon with START_SIGN. With `force`, stops any daemon, and the clients' calls fail.
 * `status` gets the findings. -1 with the reason. */
int mps_stop(bool force, struct mps_status *status, struct error *error);
