/*
 * Understands the command line.
 */
#ifndef NVTASKSET_CLI_PARSE_H
#define NVTASKSET_CLI_PARSE_H

#include "options.h"

/* Options come before SET and behind it: those of COMMAND are COMMAND's. (In taskset, the order around -p is a trap.) The words
 * of an action may stand between its options. Moves SET behind the options in `arguments`. -1 with the reason. */
int parse_options(struct options *options, int count, char **arguments, struct error *error);

#endif
