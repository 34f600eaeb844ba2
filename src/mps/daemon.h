/* Starting, inspecting and stopping MPS's control daemon. */
#ifndef NVTASKSET_MPS_DAEMON_H
#define NVTASKSET_MPS_DAEMON_H

#include "base/error.h"
#include "look.h"

/* A variable in the environment of daemons that we start, by which they are recognized: we leave no file behind. */
#define START_SIGN "NVTASKSET_MPS=started"

/* Starts a daemon if none runs. Returns when it answers, or another one that somebody else has started meanwhile. -1
 * with the reason. */
int mps_start(const char *control, const struct mps_request *request, struct mps_status *status, struct error *error);

/* Inspects MPS, and changes nothing. -1 with the reason, also if no daemon runs. */
int mps_inspect(const struct mps_request *request, struct mps_status *status, struct error *error);

/* Stops a control daemon that mps_prepare started and that nobody uses. With `force`, stops any daemon, and its
 * clients' calls fail. `status` gets what was found. -1 with the reason. */
int mps_stop(bool force, struct mps_status *status, struct error *error);

#endif
