/* Which library has called the driver. */
#ifndef NVTASKSET_LAUNCH_SPACE_CALLER_H
#define NVTASKSET_LAUNCH_SPACE_CALLER_H

#include <stdbool.h>

/* Whether cuBLAS has made the API call that is being announced on this thread, itself or through the CUDA runtime. Also
 * true if the stack cannot be read. Walks the stack, so it is too slow for launches. */
bool caller_is_cublas(void);

#endif
