/* What the code of a module, as the driver loads it, tells about its kernels. */
#ifndef NVTASKSET_CUBIN_H
#define NVTASKSET_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether kernels in it may launch kernels: CUDA's device runtime is linked into it. Kernels beside them, which launch
 * none, look the same. `cubin` is an ELF file in memory, and may be anything. */
bool cubin_launches_kernels(const void *cubin, size_t size);

#endif
