/*
 * The actions of the command, each in a file of its own. They return the exit status of the command, with the reason if it is not
 * 0; -1 stands for EXIT_FAILURE: nothing has changed.
 */
#ifndef NVTASKSET_CLI_ACTIONS_H
#define NVTASKSET_CLI_ACTIONS_H

#include "base/error.h"
#include "options.h"

#define EXIT_CHANGED 3 /* a partition was changed, but it is not in force or the change could not be reported */
#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND 127

/* Replaces this process by COMMAND, inside its partition. Returns only after --dry-run and on failure. */
int action_run(const struct options *options, struct error *error);

/* -p: changes the partition of a process if a SET is given, and shows it. */
int action_partition(const struct options *options, struct error *error);

/* -l: lists the processes with a partition that this user may examine. */
int action_list(const struct options *options, struct error *error);

/* -T: draws each GPU, with the process that has each TPC. */
int action_topology(const struct options *options, struct error *error);

/* measure: finds out the topology by launching kernels, and keeps it in a file. */
int action_measure(const struct options *options, struct error *error);

/* mps status: shows whether MPS runs, its starter and the number of its clients. mps stop: stops it. */
int action_mps_status(const struct options *options, struct error *error);
int action_mps_stop(const struct options *options, struct error *error);

/* system enable, system disable: every program that starts from now on loads our library, or none does. Neither leaves
 * its work half done. system status: shows which of the two holds. */
int action_system_status(const struct options *options, struct error *error);
int action_system_enable(const struct options *options, struct error *error);
int action_system_disable(const struct options *options, struct error *error);

/* top: shows what programs do on the GPUs, again and again. */
int action_top(const struct options *options, struct error *error);

/* metrics: writes what programs have done on the GPUs, for Prometheus: to standard output, to a file, or to a client of a socket of
 * systemd's. */
int action_metrics(const struct options *options, struct error *error);

/* Prints the help of an action, by its first word, or of the whole command if `word` is NULL. */
void help_show(const char *word);

/* Refuses `what`, for the reason `why`, and says where help is. Always -1. */
int help_refer(const struct options *options, struct error *error, const char *what, const char *why);

#endif
