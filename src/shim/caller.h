/* Which library a call of the driver comes from. */
#ifndef NVTASKSET_SHIM_CALLER_H
#define NVTASKSET_SHIM_CALLER_H

#include <stdbool.h>

/* Whether the call that is announced to us on this thread was made by cuBLAS, itself or through the CUDA runtime; true,
 * too, where the stack cannot be read. Walks the stack: not for launches. */
bool caller_is_cublas(void);

#endif
