/* Memory that the simulated GPUs can use, which is the host's: allocated here, or the program's own and registered. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "api.h"

/* The host's address of these bytes; NULL if they do not lie in one piece. */
void *memory_at(CUdeviceptr address, size_t bytes);

/* The same for a kernel of this context: it has its family's allocations. Registered memory serves all contexts, but
 * goes with the family that registered it (facts.md, "Releases"). */
void *memory_of_context(CUcontext context, CUdeviceptr address, size_t bytes);

/* The context is about to be destroyed: what belongs to it is gone. */
void memory_forget(CUcontext context);

#endif
