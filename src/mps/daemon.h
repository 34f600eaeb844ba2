/*
 * MPS's control daemon, for those who look after it.
 */
#ifndef NVTASKSET_MPS_DAEMON_H
#define NVTASKSET_MPS_DAEMON_H

#include "base/error.h"
#include "request.h"
#include "status.h"

/* Looks, and changes nothing. -1 with the reason where no daemon runs, too. */
int mps_inspect(const struct mps_request *request, struct mps_status *status, struct error *error);

/* Ends the control daemon that mps_prepare started, for whichever program; without `force` only where nobody uses it.
 * With `force` whoever started it, and its clients' calls fail. `status` is what was found. -1 with the reason. */
int mps_stop(bool force, struct mps_status *status, struct error *error);

#endif
