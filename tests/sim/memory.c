#include "memory.h"

#include "context.h"
#include "engine.h"
#include "faults.h"
#include "hook.h"
#include "launch.h"
#include "module.h"
#include "pushbuffer.h"
#include "stream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct piece {
	struct piece *next;
	CUcontext family;
	CUdevice device;
	bool is_registered;
	bool is_untouched; /* managed memory */
	char *start;
	size_t bytes;
	uint64_t content[]; /* of an allocation */
};

static struct piece *pieces;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUdeviceptr address_of(const struct piece *piece)
{
	return (CUdeviceptr)(uintptr_t)piece->start;
}

/* --- finding --------------------------------------------------------------------------------------------- */

static bool contains(const struct piece *piece, CUdeviceptr address, size_t bytes)
{
	CUdeviceptr start = address_of(piece);

	return address >= start && address - start <= piece->bytes && bytes <= piece->bytes - (address - start);
}

void *memory_of_context(CUcontext context, CUdeviceptr address, size_t bytes)
{
	void *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct piece *piece = pieces; piece && !found; piece = piece->next) {
		bool serves = !context || piece->is_registered || piece->family == context->family;

		if (serves && contains(piece, address, bytes)) {
			found = piece->start + (address - address_of(piece));
			piece->is_untouched = false;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

uint64_t memory_untouched(CUdevice device)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&lock);
	for (const struct piece *piece = pieces; piece; piece = piece->next)
		bytes += piece->is_untouched && piece->device == device ? piece->bytes : 0;
	pthread_mutex_unlock(&lock);
	return bytes;
}

void *memory_at(CUdeviceptr address, size_t bytes)
{
	return memory_of_context(NULL, address, bytes);
}

/* --- making and removing ----------------------------------------------------------------------------------- */

static CUresult add(CUcontext context, void *start, size_t bytes, struct piece **added)
{
	struct piece *new = calloc(1, sizeof *new + (start ? 0 : bytes));

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new->family = context->family;
	new->device = context->device;
	new->is_registered = start != NULL;
	new->start = start ? start : (char *)new->content;
	new->bytes = bytes;
	pthread_mutex_lock(&lock);
	new->next = pieces;
	pieces = new;
	pthread_mutex_unlock(&lock);
	*added = new;
	return CUDA_SUCCESS;
}

/* The first that begins there and is of this kind; with a family, only of that. False if there is none. */
static bool remove_at(CUdeviceptr address, bool is_registered, CUcontext family)
{
	pthread_mutex_lock(&lock);
	struct piece **link = &pieces;

	while (*link && !(address_of(*link) == address && (*link)->is_registered == is_registered &&
	                  (!family || (*link)->family == family)))
		link = &(*link)->next;
	struct piece *found = *link;

	if (found)
		*link = found->next;
	pthread_mutex_unlock(&lock);
	if (found && !is_registered)
		device_memory_give(found->device, found->bytes);
	free(found);
	return found != NULL;
}

void memory_forget(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (struct piece **link = &pieces; *link;) {
		struct piece *piece = *link;
		bool is_its = piece->family == context;

		if (is_its && !piece->is_registered)
			device_memory_give(piece->device, piece->bytes);
		if (is_its) {
			*link = piece->next;
			free(piece);
		} else {
			link = &piece->next;
		}
	}
	pthread_mutex_unlock(&lock);
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, bool is_managed)
{
	CUcontext context = context_current();
	CUresult result = context_result(context);
	struct piece *new;

	if (result != CUDA_SUCCESS)
		return result;
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_memory_take(context->device, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = add(context, NULL, bytes, &new);

	if (result == CUDA_SUCCESS) {
		new->is_untouched = is_managed;
		*address = address_of(new);
	} else {
		device_memory_give(context->device, bytes);
	}
	return result;
}

HOOKED_2(cuMemAlloc_v2, CUdeviceptr *, address, size_t, bytes)
{
	return allocate(address, bytes, false);
}

HOOKED_3(cuMemAllocManaged, CUdeviceptr *, address, size_t, bytes, unsigned int, flags)
{
	return allocate(address, bytes, true);
}

/* Rows begin at multiples of 512 bytes. */
HOOKED_5(cuMemAllocPitch_v2, CUdeviceptr *, address, size_t *, pitch, size_t, width, size_t, height, unsigned int,
         element)
{
	if (element != 4 && element != 8 && element != 16)
		return CUDA_ERROR_INVALID_VALUE;
	if (width > DEVICE_MEMORY_BYTES || height > DEVICE_MEMORY_BYTES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pitch = (width + 511) / 512 * 512;
	return allocate(address, *pitch * height, false);
}

/* Nobody can open the handle. */
HOOKED_2(cuIpcGetMemHandle, void *, handle, CUdeviceptr, address)
{
	memset(handle, 0, 64);
	return memory_at(address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult memory_free(CUdeviceptr address)
{
	engine_wait_for_all();
	if (context_current())
		engine_wait(context_current());
	return address == 0 || remove_at(address, false, NULL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

HOOKED_1(cuMemFree_v2, CUdeviceptr, address)
{
	return memory_free(address);
}

/* --- registered memory of the program ------------------------------------------------------------------------ */

/* Whether a context has registered a part of it already, this one or another. Another mapping of the same memory is
 * none (facts.md, "Releases"). */
static bool overlaps(const char *start, size_t bytes)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (const struct piece *piece = pieces; piece && !found; piece = piece->next)
		found = piece->is_registered && start < piece->start + piece->bytes && piece->start < start + bytes;
	pthread_mutex_unlock(&lock);
	return found;
}

/* Whether all its pages can be written. This needs Linux 5.14. */
static bool is_writable(char *start, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t before = (uintptr_t)start % page;

	return madvise(start - before, before + bytes, MADV_POPULATE_WRITE) == 0;
}

CUresult cuMemHostRegister_v2(void *start, size_t bytes, unsigned int flags)
{
	CUcontext context = context_current();
	CUresult result = context_result(context);
	struct piece *new;

	if (result == CUDA_SUCCESS)
		result = capture_allows();
	if (result != CUDA_SUCCESS)
		return result;
	if (!start || bytes == 0 || flags & ~(unsigned int)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
		return CUDA_ERROR_INVALID_VALUE;
	if (fault(FAULT_NO_REGISTER))
		return CUDA_ERROR_INVALID_VALUE;
	if (overlaps(start, bytes))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!is_writable(start, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return add(context, start, bytes, &new);
}

CUresult cuMemHostUnregister(void *start)
{
	CUcontext context = context_current();
	CUresult result = context ? capture_allows() : CUDA_ERROR_INVALID_CONTEXT;

	if (result != CUDA_SUCCESS)
		return result;
	engine_wait_for_all();
	return remove_at((uintptr_t)start, true, context->family) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

/* The GPU's address is the CPU's. */
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *start, unsigned int flags)
{
	CUcontext context = context_current();

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (flags != 0 || !memory_of_context(context, (uintptr_t)start, 1))
		return CUDA_ERROR_INVALID_VALUE;
	*address = (uintptr_t)start;
	return CUDA_SUCCESS;
}

/* --- copies and fills ----------------------------------------------------------------------------------------- */

/* Fills of this size and copies within the device are kernels, which are announced (hardware.md, "Callbacks"). */
#define SMALLEST_FILL_BY_KERNEL 16384
#define BYTES_OF_BLOCK 8192

static CUresult launch_drivers(CUfunction function, size_t bytes)
{
	const struct launch launch = {
		.context = context_current(), .function = function,
		.grid = {(unsigned int)((bytes + BYTES_OF_BLOCK - 1) / BYTES_OF_BLOCK), 1, 1}, .block = {512, 1, 1},
	};

	return launch_now(&launch);
}

static CUresult end_fill(size_t bytes)
{
	static struct CUfunc_st function = {.name = "memset32"};

	if (bytes < SMALLEST_FILL_BY_KERNEL)
		pushbuffer_write_other(context_current(), NULL);
	return bytes >= SMALLEST_FILL_BY_KERNEL ? launch_drivers(&function, bytes) : CUDA_SUCCESS;
}

static CUresult find_for_copy(void **memory, CUdeviceptr address, size_t bytes)
{
	CUcontext context = context_current();
	CUresult result = context_result(context);

	*memory = memory_at(address, bytes);
	return result == CUDA_SUCCESS && !*memory ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	void *memory;
	CUresult result = find_for_copy(&memory, to, bytes);

	if (result == CUDA_SUCCESS) {
		pushbuffer_write_other(context_current(), stream);
		memcpy(memory, from, bytes);
	}
	return result;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	void *memory;
	CUresult result = find_for_copy(&memory, from, bytes);

	if (result == CUDA_SUCCESS) {
		pushbuffer_write_other(context_current(), stream);
		memcpy(to, memory, bytes);
	}
	return result;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return cuMemcpyHtoDAsync_v2(to, from, bytes, NULL);
}

HOOKED_3(cuMemcpyDtoH_v2, void *, to, CUdeviceptr, from, size_t, bytes)
{
	return cuMemcpyDtoHAsync_v2(to, from, bytes, NULL);
}

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count)
{
	void *memory;
	CUresult result = find_for_copy(&memory, address, count);

	if (result != CUDA_SUCCESS)
		return result;
	memset(memory, value, count);
	return end_fill(count);
}

CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned int value, size_t count)
{
	void *memory;
	CUresult result = find_for_copy(&memory, address, count * sizeof value);

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		((unsigned int *)memory)[i] = value;
	return result == CUDA_SUCCESS ? end_fill(count * sizeof value) : result;
}
