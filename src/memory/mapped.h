/*
 * Memory made and mapped by the program itself (cuMemCreate, cuMemMap). The memory lives as long as a handle or a
 * mapping. Imports count for the process that allocated.
 *
 * Any thread. Each function is called when the driver's of the same name has succeeded. mapped_release and
 * mapped_unmap come before the call, since another thread may get the same handle or address at once; they return the
 * bytes to give back when the call has succeeded.
 */
#ifndef NVTASKSET_MEMORY_MAPPED_H
#define NVTASKSET_MEMORY_MAPPED_H

#include "account.h"

#include <stddef.h>

/* The bytes are reserved already. */
void mapped_create(const void *handle, struct account *account, uint64_t bytes);
void mapped_retain(const void *handle, const void *address);
void mapped_map(const void *handle, const void *address, size_t bytes);

struct mapped_end {
	struct account *account; /* NULL: nothing ends */
	uint64_t bytes;
};
struct mapped_end mapped_release(const void *handle);
struct mapped_end mapped_unmap(const void *address, size_t bytes);

void mapped_after_fork(void);

#endif
