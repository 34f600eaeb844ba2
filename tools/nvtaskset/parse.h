/*
 * Understands the command line.
 */
#ifndef NVTASKSET_PARSE_H
#define NVTASKSET_PARSE_H

#include "options.h"

/* Options come first, positional arguments after them. (In taskset, the order around -p is a trap.) The words of an
 * action may stand between its options. -1 with the reason. */
int parse_options(struct options *options, int count, char **arguments, struct error *error);

#endif
