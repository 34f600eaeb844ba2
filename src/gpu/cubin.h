/* Reads the code of a module as loaded by the driver: an ELF file in memory, perhaps damaged. Any pointer is safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether kernels in the module may launch kernels: CUDA's device runtime is linked into the module. Launches by
 * kernels are not announced, and run on the whole GPU; under MPS they do not run (facts.md, "Kernels that launch
 * kernels"). We can only report the possibility: other kernels of the module look the same. */
bool cubin_launches_kernels(const void *cubin, size_t size);

/* Whether the module has variables in managed memory. */
bool cubin_has_managed_variables(const void *cubin, size_t size);
