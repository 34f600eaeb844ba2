/*
 * The state of MPS for this process: where its control daemon would be, whether it runs, and what it reports.
 */
#ifndef NVTASKSET_MPS_LOOK_H
#define NVTASKSET_MPS_LOOK_H

#include "base/error.h"
#include "request.h"
#include "status.h"

#include <limits.h>

#define MPS_DIRECTORY_ENVIRONMENT "CUDA_MPS_PIPE_DIRECTORY"

/* Inspects MPS, and changes nothing. Fills in all of `status` except what only mps_inspect fills in, and the control
 * program's path. It is no failure if no daemon runs. With MPS_OFF the daemon is not asked. -1 with the reason: not
 * found, not permitted, no answer. */
int mps_look(const struct mps_request *request, struct mps_status *status, char control[PATH_MAX], struct error *error);

/* Asks the same daemon once more. */
int mps_look_again(const char *control, const struct mps_request *request, struct mps_status *status,
                   struct error *error);

/* The daemon needs 2 ms to answer. mps_ask_early asks now; the next mps_look of this process takes the answer, and
 * reports failures. If there is no early question, mps_look asks itself. Whoever asks early and does not call mps_look
 * must call mps_forget. */
void mps_ask_early(const struct mps_request *request);
void mps_forget(void);

#endif
