/*
 * MPS as this process finds it: where its control daemon would be, whether it is there, and what it says.
 */
#ifndef NVTASKSET_MPS_LOOK_H
#define NVTASKSET_MPS_LOOK_H

#include "base/error.h"
#include "request.h"
#include "status.h"

#include <limits.h>

#define MPS_DIRECTORY_ENVIRONMENT "CUDA_MPS_PIPE_DIRECTORY"

/* Looks, and changes nothing: all of `status` but what is for mps_inspect, and the control program's path. No daemon is not a
 * failure. With MPS_OFF nobody is asked. -1 with the reason: not found, not permitted, no answer. */
int mps_look(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX], struct error *error);

/* Asks the same daemon once more. */
int mps_look_again(const char *control, const struct mps_request *request, struct mps_status *status,
                   struct error *error);

/* The daemon takes 2 ms to answer. Asked early, it does so while the caller does something else, and the next mps_look
 * of this process takes that answer; without, it asks itself. What cannot be asked is found out, and told, by then.
 * Whoever asks early and does not come to that must forget it. */
void mps_ask_early(const struct mps_request *request);
void mps_forget(void);

#endif
