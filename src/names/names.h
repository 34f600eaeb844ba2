/*
 * The driver's functions under the driver's names, for readers of the symbol table of libcuda.so.1: linkers, and
 * with linkers Triton, cgo and CMake (loading.md).
 *
 * Each name is one jump to the driver's function (MACHINE/stubs.S), by way of a slot that names_open fills. A name
 * without a function in the driver is taken out of our symbol table in memory: dlsym finds the driver's functions only.
 */
#pragma once

/* The name of the loaded library with the functions. Each of our libraries that contains src/names defines the name. */
extern const char names_library[];

/* For a constructor: fills all slots, once. A call of a name before then does the same: constructors of libraries
 * without the driver among their dependencies may run earlier. */
void names_open(void);

/* Called by stubs.S for a name that is used before names_open: calls names_open, and returns the driver's function. */
void *names_early(unsigned int number);
