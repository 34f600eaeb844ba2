/*
 * Runs NVIDIA's control program of MPS for a limited time, and asks MPS's daemon by the program. The callers know the
 * commands, and the meaning of the answers.
 */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define MPS_CONTROL "nvidia-cuda-mps-control"

/* MPS's own limits of SMs for a program. */
#define MPS_PERCENTAGE_ENVIRONMENT "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
#define MPS_PER_CONTEXT_ENVIRONMENT "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING"
#define MPS_PARTITION_ENVIRONMENT "CUDA_MPS_SM_PARTITION"

/* The time limit for the daemon's answer, and for the start: 15 s. An answer takes 2 ms, a start 40 ms. Tests set
 * another limit for a busy machine. */
extern int mps_patience_ms;

/* The pause between two tries. */
#define MPS_RETRY_US 10000

/* Room for several times the longest list of clients. */
#define MPS_CONTROL_ANSWER 65536

/* The end of a call: an exit status, or a value here. */
enum {
	MPS_CONTROL_IMPOSSIBLE = -1, /* no memory, no process: see errno */
	MPS_CONTROL_OVERDUE = -2,    /* killed after the time limit */
	MPS_CONTROL_DIED = -3        /* ended by a signal */
};

/* Finds the program on PATH, or where NVIDIA's packages and container images put it. -1 with the reason. */
int mps_control_find(char path[PATH_MAX], struct error *error);

/* A running question. The caller may work meanwhile; SIGCHLD is not ignored until the end. */
struct mps_question {
	pid_t child; /* 0 without a child: `reason` is then the errno */
	int reason;
	int output;
	struct sigaction inherited;
};

/* Runs the program with the lines of `commands`. mps_ask_end reports failures. */
void mps_ask_begin(struct mps_question *question, const char *control, const char *commands);

/* Takes the answer, cut to its room. While the daemon is busy, asks again with the same commands (NULL: never), within
 * the time limit. Returns the exit status, or MPS_CONTROL_…. Must be called once for each begin. */
int mps_ask_end(struct mps_question *question, const char *control, const char *commands,
                char answer[MPS_CONTROL_ANSWER]);

int mps_ask(const char *control, const char *commands, char answer[MPS_CONTROL_ANSWER]);

/* The same by arguments: interface 3 takes commands as arguments (docs.nvidia.com/deploy/mps, "MPS v3 Interface"). The
 * first argument is the program's name, the last NULL. */
int mps_ask_words(const char *control, char *const *arguments, char answer[MPS_CONTROL_ANSWER]);

/* Starts the daemon. The daemon inherits no descriptor, with `from_root` no working directory, and no variable of the
 * environment for a single program. `added` has more variables, and ends with NULL. Returns as mps_ask_end. */
int mps_control_start(const char *control, const char *const *added, bool from_root, char answer[MPS_CONTROL_ANSWER]);

/* The first line of an answer, for a reason. The rest of the answer is lost. */
const char *mps_first_line(char *answer);
