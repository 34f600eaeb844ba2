/* The simulated GPUs' memory: the host's, with its bounds remembered. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "api.h"

/* The host's address of these bytes; NULL if they do not lie in one allocation. */
void *memory_at(CUdeviceptr address, size_t bytes);

#endif
