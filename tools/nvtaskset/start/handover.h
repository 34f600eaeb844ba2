/*
 * Commands, known by name, with work outside the environment of COMMAND: by a server that runs already, in a container,
 * by a child with a new environment. A child of COMMAND is not looked at.
 */
#ifndef NVTASKSET_START_HANDOVER_H
#define NVTASKSET_START_HANDOVER_H

#include "base/error.h"

#include <stdbool.h>

/* Whether the command is in the table; then the reason has the remedy. NULL ends the words. */
bool handover_examine(char **words, struct error *error);

#endif
