/* What the command can do: one file for each. All return the command's exit status, or leave a reason. */
#ifndef NVTASKSET_ACTIONS_H
#define NVTASKSET_ACTIONS_H

#include "base/error.h"
#include "options.h"

#define EXIT_CHANGED 3 /* a partition was changed, and it is not in force, or that could not be reported */
#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND 127

/* Replaces this process by COMMAND inside its partition: returns only on failure, with the exit status, or where it was
 * only asked what would be done. */
int action_run(const struct options *options, struct error *error);

/* -p: shows a process's partition, after changing it where a SET was given. The exit status, with the reason where it is
 * not 0; EXIT_FAILURE: nothing has changed. */
int action_partition(const struct options *options, struct error *error);

/* -l: every process with a partition that this user may look at. 0, or -1 with the reason. */
int action_list(const struct options *options, struct error *error);

/* -T: each GPU as a picture, and who sits where. 0, or -1 with the reason. */
int action_topology(const struct options *options, struct error *error);

/* measure: finds the topology out by launching kernels, and keeps it. 0, or -1 with the reason. */
int action_measure(const struct options *options, struct error *error);

/* mps status: whether MPS runs, whose it is, and who uses it. mps stop: ends it. 0, or -1 with the reason. */
int action_mps_status(const struct options *options, struct error *error);
int action_mps_stop(const struct options *options, struct error *error);

/* system enable, system disable: every program that starts from now on loads our library, or no longer; not done in part.
 * system status: whether they do. 0, or -1 with the reason. */
int action_system_status(const struct options *options, struct error *error);
int action_system_enable(const struct options *options, struct error *error);
int action_system_disable(const struct options *options, struct error *error);

/* What --help prints: of an action's word, or of the command where it is NULL. */
void help_show(const char *word);

#endif
