/*
 * Completion: what may stand where a command line is being typed. The three shells' functions (tools/completions) only ask.
 */
#ifndef NVTASKSET_ACTIONS_COMPLETE_H
#define NVTASKSET_ACTIONS_COMPLETE_H

/* nvtaskset --complete WORD...: `arguments` are that option and the words behind the command's name, up to the one that is being
 * typed, which may be empty. Prints what begins with it, a line for each, with a tab and what it is behind it. The first line may
 * be another one: ":list", if more of a list may follow without a space; ":files"; or ":command N" if the shell knows what
 * follows, since word N is COMMAND. Returns the exit status. */
int complete(int count, char **arguments);

#endif
