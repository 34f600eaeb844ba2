/*
 * A question to MPS's control daemon, repeated while the daemon is busy, within a time limit.
 */
#ifndef NVTASKSET_MPS_QUESTION_H
#define NVTASKSET_MPS_QUESTION_H

#include "base/error.h"
#include "control.h"
#include "status.h"

/* How long the daemon may take to answer, and to start: normally 2 ms and 40 ms. Tests set another limit for a busy
 * machine. */
extern int mps_patience_ms;

/* The pause between two tries. */
#define MPS_RETRY_US 10000

/* The control program's exit status, or why there is none (control.h). */
int mps_ask(const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER]);

/* The same if the question was asked once already: `result` and `answer` are those of the first try. */
int mps_ask_again(int result, const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER]);

/* For a `result` that is always a failure, -1 with the reason. Otherwise 0. */
int mps_explain(int result, const char *control, const struct mps_status *status, struct error *error);

/* The first line of an answer, for a reason. The rest of the answer is lost. */
const char *mps_first_line(char *answer);

#endif
