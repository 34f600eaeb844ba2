/*
 * Tries our library out before COMMAND is started: a process of our own, in COMMAND's environment, opens the driver
 * library by name, as COMMAND will. Nothing is initialised, no GPU is woken.
 */
#ifndef NVTASKSET_PROBE_H
#define NVTASKSET_PROBE_H

#include "environment.h"
#include "error.h"

#include <stdbool.h>

/* 0 where that process found our library, and the library set itself up. `environment` must be a strict one. Waits a
 * bounded time. */
int probe(const struct environment *environment, struct error *error);

/* Whether this process is one of those, by its name; then it does just this, and leaves with its exit status. */
bool probe_is_me(const char *name);
int probe_main(void);

#endif
