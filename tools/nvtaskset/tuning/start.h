/*
 * Starting programs beside this one, each in a partition, as `nvtaskset WORD…` does; and neighbours that disturb.
 */
#ifndef NVTASKSET_TUNING_START_H
#define NVTASKSET_TUNING_START_H

#include "base/error.h"
#include "cli/options.h"
#include "state/segment/edit.h"

#include <sys/types.h>

/* Reads the words of a command line, ended by NULL, of which the first is the command's own name; COMMAND, which may be NULL, is to
 * follow. -1 with the reason. */
int start_parse(struct options *options, char *const words[], char *command[], struct error *error);

/* Starts a COMMAND so. What it prints goes to `output`. `keeper`, which may be NULL, knows of it from the beginning. -1 with the reason
 * where `nvtaskset` would refuse it, or it cannot be executed: then nothing is left of it, and the pid is 0. */
struct keeper;
int start_program(pid_t *pid, char *const words[], char *command[], int output, struct keeper *keeper, struct error *error);

/* The command's first argument, by which it is a neighbour, and what it does then: until it is killed, or its parent ends. */
#define NEIGHBOUR_ARGUMENT "--neighbour"
int neighbour_main(const char *kind, const char *gpu);

/* Starts one on these TPCs of a GPU, by its number, and waits until it works. -1 with the reason; the caller ends it in any case. */
int neighbour_start(pid_t *pid, const struct options *options, const char *gpu, const char *tpcs, struct error *error);

/* The value of --mps. */
char *start_mps(const struct options *options);

/* Opens a program; one that was started here, as soon as it has made a context on a GPU. -1 with the reason. */
#define START_SECONDS 120 /* it may take so long */
int start_await(struct editor *editor, pid_t pid, bool is_new, struct error *error);

/* Ends a program that was started here, if there is one, and waits for its end; signal 0: just waits. */
void start_kill(pid_t pid, int signal);

#endif
