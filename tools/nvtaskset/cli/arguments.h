/*
 * Arguments that are no options: the words of an action; or SET, and COMMAND or PID.
 */
#ifndef NVTASKSET_CLI_ARGUMENTS_H
#define NVTASKSET_CLI_ARGUMENTS_H

#include "options.h"

/* Takes `argument` if it is the next word of an action, `taken` words of which were taken before. The first word stands
 * where otherwise a SET stands, the second behind the first. */
bool arguments_take_word(struct options *options, unsigned int taken, const char *argument);

/* Whether `argument` is a SET, or the PID where there is no SET. Options may follow. */
bool arguments_may_be_set(const struct options *options, const char *argument);

/* After the options behind `set`, one of which may be wrong and have its reason in `error` already. A COMMAND without a SET
 * has options that are not ours: it is the better reason. -1 with the reason. */
int arguments_check_set(const struct options *options, const char *set, bool has_wrong_option, struct error *error);

/* Takes the `count` arguments behind options and words; NULL ends them, and arguments[-1] exists. -1 with the reason. */
int arguments_take(struct options *options, char **arguments, int count, struct error *error);

#endif
