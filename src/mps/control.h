/*
 * Runs NVIDIA's program that controls MPS, for a limited time, and asks MPS's daemon by it. Its commands, and the meaning of its
 * answers, are for the callers to know.
 */
#ifndef NVTASKSET_MPS_CONTROL_H
#define NVTASKSET_MPS_CONTROL_H

#include "base/error.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define MPS_CONTROL "nvidia-cuda-mps-control"

/* MPS's own limits of SMs, for one program. */
#define MPS_PERCENTAGE_ENVIRONMENT "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
#define MPS_PER_CONTEXT_ENVIRONMENT "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING"
#define MPS_PARTITION_ENVIRONMENT "CUDA_MPS_SM_PARTITION"

/* How long the daemon may take to answer, and to start: normally 2 ms and 40 ms. Tests set another limit for a busy
 * machine. */
extern int mps_patience_ms;

/* The pause between two tries. */
#define MPS_RETRY_US 10000

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
struct mps_question {
	pid_t child; /* 0 if there is none: `reason` is then the errno */
	int reason;
	int output;
	struct sigaction inherited;
};

/* Runs the program with these lines of commands. Failures are reported by mps_ask_end. */
void mps_ask_begin(struct mps_question *question, const char *control, const char *commands);

/* Takes the answer, cut to its room; asks again with the same commands while the daemon is busy, within the time limit; not if they
 * are NULL. Returns the exit status, or why there is none. Must be called once for each begin. */
int mps_ask_end(struct mps_question *question, const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER]);

/* Both. */
int mps_ask(const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER]);

/* The same by arguments, as interface 3 takes commands (docs.nvidia.com/deploy/mps, "MPS v3 Interface"). The first is the program's
 * name, the last NULL. */
int mps_ask_words(const char *control, char *const *arguments, char answer[MPS_CONTROL_ANSWER]);

/* Starts the daemon. It inherits none of our descriptors, with `from_root` not our working directory, and no variable
 * of the environment that is meant for one program. `added` has more variables, and ends with NULL. */
int mps_control_start(const char *control, const char *const *added, bool from_root, char answer[MPS_CONTROL_ANSWER]);

/* The first line of an answer, for a reason. The rest of the answer is lost. */
const char *mps_first_line(char *answer);

#endif
