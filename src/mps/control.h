/*
 * NVIDIA's program that controls MPS, run for a bounded time. The binaries are not always on PATH. What to say to it, others
 * know, and what its answers mean.
 */
#ifndef NVTASKSET_MPS_CONTROL_H
#define NVTASKSET_MPS_CONTROL_H

#include "base/error.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define MPS_CONTROL "nvidia-cuda-mps-control"

/* Room for the list of clients that a server can have, several times over. */
#define MPS_CONTROL_ANSWER 65536

/* How a call ended: with an exit status, or with one of these. */
enum {
	MPS_CONTROL_IMPOSSIBLE = -1, /* no memory, no process: errno says */
	MPS_CONTROL_OVERDUE = -2,    /* its time was over, and it was killed */
	MPS_CONTROL_DIED = -3        /* of a signal */
};

/* On PATH, or where NVIDIA's packages and container images put it. -1 with the reason. */
int mps_control_find(char path[PATH_MAX], struct error *error);

/* A question that it has been given, until the answer is taken. The caller may do something else meanwhile; SIGCHLD is
 * not ignored for as long. */
struct mps_control_question {
	pid_t child; /* -1 where there is none: `reason` says why, as errno does */
	int reason;
	int output;
	struct sigaction inherited;
};

/* Gives it lines of commands. What goes wrong is told with the answer. */
void mps_control_begin(struct mps_control_question *question, const char *control, const char *commands);

/* Takes the answer, which is cut where it is too long. To be called once for each begin. */
int mps_control_end(struct mps_control_question *question, long limit_ms, char answer[MPS_CONTROL_ANSWER]);

/* Starts the daemon, which holds nothing of ours: no descriptor, no working directory if `from_root`, no variable of the
 * environment that is meant for one program. `added`, ended by NULL, comes on top. */
int mps_control_start(const char *control, const char *const *added, bool from_root, long limit_ms,
                      char answer[MPS_CONTROL_ANSWER]);

#endif
