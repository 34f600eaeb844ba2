/*
 * Tests our library before programs use it. A process of our own, the probe, loads the driver library by name, as
 * programs do, in COMMAND's environment or in a plain environment. CUDA is not initialised, and no GPU wakes up.
 */
#pragma once

#include "base/error.h"
#include "environment.h"

/* 0 if the probe has loaded our library, and the library has set itself up; -1 with the reason. `environment` must be
 * strict. Waits for 10 seconds at most. */
int probe(const struct environment *environment, struct error *error);

/* The same without COMMAND's variables. LD_LIBRARY_PATH is `directory`, or unset for NULL. */
int probe_bare(const char *directory, struct error *error);

/* Whether this process is the probe, by the name it was started with. Then main must return probe_main's result. */
bool probe_is_me(const char *name);
int probe_main(void);
