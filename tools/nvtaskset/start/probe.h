/*
 * Tries our library out before others use it: a process of our own, in COMMAND's environment or another's, opens the
 * driver library by name, as they will. Nothing is initialised, no GPU is woken.
 */
#ifndef NVTASKSET_PROBE_H
#define NVTASKSET_PROBE_H

#include "base/error.h"
#include "environment.h"

#include <stdbool.h>

/* 0 where that process found our library, and the library set itself up. `environment` must be a strict one. Waits a
 * bounded time. */
int probe(const struct environment *environment, struct error *error);

/* The same without any of our variables, and with LD_LIBRARY_PATH naming just this directory, or, if NULL, nothing. */
int probe_bare(const char *directory, struct error *error);

/* Whether this process is one of those, by its name; then it does just this, and leaves with its exit status. */
bool probe_is_me(const char *name);
int probe_main(void);

#endif
