/* Memory that the simulated GPUs can use, which is the host's: allocated here, or the program's own and registered. */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "api.h"

/* The host's address of these bytes; NULL if they do not lie in one piece. */
void *memory_at(CUdeviceptr address, size_t bytes);

/* The same for a kernel of the context, with the family's allocations. Registered memory serves all contexts, but
 * goes with the family that registered it (facts.md, "Releases"). */
void *memory_of_context(CUcontext context, CUdeviceptr address, size_t bytes);

/* As cuMemFree. */
CUresult memory_free(CUdeviceptr address);

/* The bytes of a device's managed memory that nothing has touched. */
uint64_t memory_untouched(CUdevice device);

/* The context is about to be destroyed: what belongs to it is gone. */
void memory_forget(CUcontext context);

/* Takes memory of a device, and gives it back. False if the GPU has no more. */
bool device_memory_take(CUdevice device, uint64_t bytes);
void device_memory_give(CUdevice device, uint64_t bytes);
uint64_t device_memory_held(CUdevice device);

/* The program has synchronised: the devices' own pools give unused memory back. */
void device_memory_synchronized(void);

/* The total memory of a device, and the largest sum of allocations. */
#define DEVICE_MEMORY_BYTES (UINT64_C(16) << 30)

/* A graph's instance with allocations of so many bytes runs on the device of the current context: the driver keeps
 * the memory. */
CUresult device_memory_for_graph(uint64_t bytes);
void device_memory_graph_ends(void);

#endif
