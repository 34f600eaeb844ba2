/*
 * The actions of the command (options.h). An action returns the exit status, and sets the reason unless 0. -1 means
 * EXIT_FAILURE, with nothing changed.
 */
#pragma once

#include "base/error.h"
#include "base/pids.h"
#include "gpu/topology/topology.h"
#include "options.h"

#define EXIT_CHANGED 3 /* a partition was changed, but is not in force, or the report failed */
#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND 127

#define ACTION_FUNCTION(identifier, function, name) int function(const struct options *options, struct error *error);
ACTIONS(ACTION_FUNCTION)
#undef ACTION_FUNCTION

/* action_run, of a line for parse_line. */
int action_run_line(char *line, char **command, struct error *error);

/* nvtaskset --complete WORD...: `arguments` are this option and the words behind the command's name, up to the word
 * that is being typed, which may be empty. Prints each possible word on a line, then a tab and a description. The first
 * line may instead be ":list", if a list may go on without a space; ":files"; or ":command N" if word N is COMMAND and
 * the shell knows the rest. Returns the exit status. */
int action_complete(int count, char **arguments);

/* Refuses `what`, for the reason `why`, and says where help is. Always -1. */
int help_refer(const struct options *options, struct error *error, const char *what, const char *why);

/* --- attaching.c -------------------------------------------------------------------------------------------------- */

/* --attach: loads our library into each process that uses CUDA without, and passes on the topologies in `list`. The
 * process then has a segment, and the whole of each GPU until a change. A process without CUDA that shares its parent's
 * segment gets a segment of its own. The remaining processes stay as they are. With `verbose`, prints the time of each
 * on standard error. -1 with the reason. */
int attach_processes(const struct pids *pids, const struct topology_list *list, bool verbose, struct error *error);
