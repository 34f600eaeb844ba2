/*
 * Memory that a program makes and maps by itself (cuMemCreate, cuMemMap). It lives as long as a handle or a mapping of
 * it. What was imported from another process is that one's, and is not counted.
 *
 * Any thread. Each function is called when the driver's of that name has succeeded, but for mapped_release and
 * mapped_unmap: these come before, since another thread may get the same handle or address at once, and return what
 * ends with them, to be given back when the driver has done it.
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
