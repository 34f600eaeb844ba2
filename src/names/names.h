/*
 * The driver's functions under the driver's names, for whoever reads the symbol table of libcuda.so.1: linkers, and with them
 * Triton, cgo and CMake (facts.md, "Loading").
 *
 * Each name is one jump to the driver's function (MACHINE/stubs.S), by way of a slot that names_open fills. A name that the
 * driver lacks is taken out of our symbol table in memory: so dlsym finds what the driver has, and nothing else.
 */
#ifndef NVTASKSET_NAMES_H
#define NVTASKSET_NAMES_H

/* The name by which the library with the functions is loaded. Whoever links this room defines it. */
extern const char names_library[];

/* Fills all slots, once. For a constructor. Before it, the first call of any name does so: libraries that do not name the
 * driver as their dependency may have constructors that run earlier. */
void names_open(void);

/* For stubs.S: the function that a name leads to, after names_open. */
void *names_early(unsigned int number);

#endif
