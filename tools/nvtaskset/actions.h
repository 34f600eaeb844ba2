/* What the command can do: one file for each. All return the command's exit status, or leave a reason. */
#ifndef NVTASKSET_ACTIONS_H
#define NVTASKSET_ACTIONS_H

#include "error.h"
#include "options.h"

#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND 127

/* Replaces this process by COMMAND inside its partition: returns only on failure, with the exit status. */
int action_run(const struct options *options, struct error *error);

/* -p: shows a process's partition, after changing it where a SET was given. 0, or -1 with the reason. */
int action_partition(const struct options *options, struct error *error);

/* -l: every process with a partition that this user may look at. 0, or -1 with the reason. */
int action_list(struct error *error);

void action_help(void);

#endif
