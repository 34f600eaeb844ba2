/*
 * The actions of the command (options.h). They return its exit status, with the reason if it is not 0; -1 stands for
 * EXIT_FAILURE: nothing has changed.
 */
#ifndef NVTASKSET_CLI_ACTIONS_H
#define NVTASKSET_CLI_ACTIONS_H

#include "base/error.h"
#include "options.h"

#define EXIT_CHANGED 3 /* a partition was changed, but it is not in force or the change could not be reported */
#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND 127

#define ACTION_FUNCTION(identifier, function, name) int function(const struct options *options, struct error *error);
ACTIONS(ACTION_FUNCTION)
#undef ACTION_FUNCTION

/* nvtaskset --complete WORD...: `arguments` are that option and the words behind the command's name, up to the one that is being
 * typed, which may be empty. Prints what begins with it, a line for each, with a tab and what it is behind it. The first line may
 * be another one: ":list", if more of a list may follow without a space; ":files"; or ":command N" if the shell knows what
 * follows, since word N is COMMAND. Returns the exit status. */
int action_complete(int count, char **arguments);

/* Refuses `what`, for the reason `why`, and says where help is. Always -1. */
int help_refer(const struct options *options, struct error *error, const char *what, const char *why);

#endif
