/*
 * Finds modules whose kernels may launch kernels. Such launches are not announced and run on the whole GPU; under MPS
 * they do not run at all (facts.md, "Kernels that launch kernels"). We can only report that they are possible.
 */
#ifndef NVTASKSET_DRIVER_MODULES_H
#define NVTASKSET_DRIVER_MODULES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether kernels in the code of a module may launch kernels. False if the code cannot be read; any pointer is safe. */
bool modules_launch_kernels(const void *cubin, size_t size);

/* Whether it has variables in managed memory. The same. */
bool modules_have_managed_variables(const void *cubin, size_t size);

#endif
