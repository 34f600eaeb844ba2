/*
 * Arguments that are no options: the words of an action; or SET, and COMMAND or PID.
 */
#ifndef NVTASKSET_ARGUMENTS_H
#define NVTASKSET_ARGUMENTS_H

#include "options.h"

/* Takes `argument` if it is the next word of an action, `taken` words of which were taken before. The first word stands
 * in place of a SET, the second behind the first. */
bool arguments_take_word(struct options *options, unsigned int taken, const char *argument);

/* Takes the `count` arguments behind options and words; NULL ends them, and arguments[-1] exists. -1 with the reason. */
int arguments_take(struct options *options, char **arguments, int count, struct error *error);

#endif
