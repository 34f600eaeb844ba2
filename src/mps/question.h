/*
 * A question to MPS's control daemon: asked in its turn, answered in a bounded time.
 */
#ifndef NVTASKSET_MPS_QUESTION_H
#define NVTASKSET_MPS_QUESTION_H

#include "base/error.h"
#include "control.h"
#include "status.h"

/* How long it may take to answer, and to start: a healthy one answers in 2 ms and starts in 40 ms. Tests, on a busy machine,
 * set something else. */
extern int mps_patience_ms;

/* How far apart two tries are. */
#define MPS_RETRY_US 10000

/* The control program's exit status, or why there is none (control.h). */
int mps_ask(const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER]);

/* The same once it has been asked: `result` and `answer` are of that first try. */
int mps_ask_again(int result, const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER]);

/* Why the control program has no answer, as far as that is always a failure: -1 with the reason. */
int mps_explain(int result, const char *control, const struct mps_status *status, struct error *error);

/* The first line of an answer, for a reason. What follows it in the answer is lost. */
const char *mps_first_line(char *answer);

#endif
