#include "memory.h"

#include "context.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct allocation {
	struct allocation *next;
	size_t bytes;
	uint64_t content[];
};

static struct allocation *allocations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUdeviceptr address_of(const struct allocation *allocation)
{
	return (CUdeviceptr)(uintptr_t)allocation->content;
}

void *memory_at(CUdeviceptr address, size_t bytes)
{
	void *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct allocation *allocation = allocations; allocation && !found;
	     allocation = allocation->next) {
		CUdeviceptr start = address_of(allocation);

		if (address >= start && address - start <= allocation->bytes &&
		    bytes <= allocation->bytes - (address - start))
			found = (char *)allocation->content + (address - start);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	struct allocation *new = calloc(1, sizeof *new + bytes);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new->bytes = bytes;
	pthread_mutex_lock(&lock);
	new->next = allocations;
	allocations = new;
	pthread_mutex_unlock(&lock);
	*address = address_of(new);
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct allocation *found = NULL;

	if (address == 0)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	struct allocation **link = &allocations;

	while (*link && address_of(*link) != address)
		link = &(*link)->next;
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&lock);
	free(found);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- copies and fills: no launch callback announces them (docs/facts.md, "Callbacks") --------------------- */

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	void *memory = memory_at(to, bytes);

	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(memory, from, bytes);
	return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	const void *memory = memory_at(from, bytes);

	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, memory, bytes);
	return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	(void)stream;
	return cuMemcpyHtoD_v2(to, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)stream;
	return cuMemcpyDtoH_v2(to, from, bytes);
}

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count)
{
	void *memory = memory_at(address, count);

	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	memset(memory, value, count);
	return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream)
{
	(void)stream;
	return cuMemsetD8_v2(address, value, count);
}

CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned int value, size_t count)
{
	uint32_t *memory = memory_at(address, count * sizeof *memory);

	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		memory[i] = value;
	return CUDA_SUCCESS;
}
