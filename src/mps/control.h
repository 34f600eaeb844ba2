/*
 * Runs NVIDIA's program that controls MPS, for a limited time. Its commands, and the meaning of its answers, are for
 * the callers to know.
 */
#ifndef NVTASKSET_MPS_CONTROL_H
#define NVTASKSET_MPS_CONTROL_H

#include "base/error.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define MPS_CONTROL "nvidia-cuda-mps-control"

/* Room for several times the longest list of clients. */
#define MPS_CONTROL_ANSWER 65536

/* How a call ended: with an exit status, or with one of these. */
enum {
	MPS_CONTROL_IMPOSSIBLE = -1, /* no memory, no process: see errno */
	MPS_CONTROL_OVERDUE = -2,    /* it was killed after its time limit */
	MPS_CONTROL_DIED = -3        /* a signal ended it */
};

/* Finds the program on PATH, or where NVIDIA's packages and container images put it. -1 with the reason. */
int mps_control_find(char path[PATH_MAX], struct error *error);

/* A running question. The caller may do something else meanwhile; SIGCHLD is not ignored as long as it runs. */
struct mps_control_question {
	pid_t child; /* -1 if there is none: `reason` is then the errno */
	int reason;
	int output;
	struct sigaction inherited;
};

/* Runs the program with these lines of commands. Failures are reported by mps_control_end. */
void mps_control_begin(struct mps_control_question *question, const char *control, const char *commands);

/* Takes the answer, cut to its room. Must be called once for each begin. */
int mps_control_end(struct mps_control_question *question, long limit_ms, char answer[MPS_CONTROL_ANSWER]);

/* Starts the daemon. It inherits none of our descriptors, with `from_root` not our working directory, and no variable
 * of the environment that is meant for one program. `added` has more variables, and ends with NULL. */
int mps_control_start(const char *control, const char *const *added, bool from_root, long limit_ms,
                      char answer[MPS_CONTROL_ANSWER]);

#endif
