/* Reads the code of a module, as the driver loads it. */
#ifndef NVTASKSET_CUBIN_H
#define NVTASKSET_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether kernels in the module may launch kernels: CUDA's device runtime is linked into it. Other kernels of the
 * module look the same. `cubin` is an ELF file in memory, and may be damaged. */
bool cubin_launches_kernels(const void *cubin, size_t size);

/* Whether the module has variables in managed memory. Under the same conditions. */
bool cubin_has_managed_variables(const void *cubin, size_t size);

#endif
