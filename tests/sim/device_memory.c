/* Memory of a device without any of the host's behind it: arrays, mapped memory, and graphs' allocations. Only
 * memory from pools can be read and written. */
#include "context.h"
#include "faults.h"
#include "graph.h"
#include "hook.h"
#include "memory.h"
#include "stream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 16
#define PIECE ((uint64_t)2 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t held[DEVICES];

/* The head of everything with a handle. */
static pthread_mutex_t handles = PTHREAD_MUTEX_INITIALIZER;

bool device_memory_take(CUdevice device, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	bool fits = bytes <= DEVICE_MEMORY_BYTES && held[device] <= DEVICE_MEMORY_BYTES - bytes;

	held[device] += fits ? bytes : 0;
	pthread_mutex_unlock(&lock);
	return fits;
}

void device_memory_give(CUdevice device, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	held[device] -= bytes;
	pthread_mutex_unlock(&lock);
}

uint64_t device_memory_held(CUdevice device)
{
	pthread_mutex_lock(&lock);
	uint64_t bytes = held[device];

	pthread_mutex_unlock(&lock);
	return bytes;
}

/* --- things with a handle ----------------------------------------------------------------------------------------- */

struct thing {
	CUdevice device;
	uint64_t bytes;
	unsigned int users; /* handles and mappings */
};

static CUresult make(void **made, CUdevice device, uint64_t bytes)
{
	struct thing *new = malloc(sizeof *new);

	if (!new || !device_memory_take(device, bytes)) {
		free(new);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*new = (struct thing){device, bytes, 1};
	*made = new;
	return CUDA_SUCCESS;
}

static void leave(struct thing *thing)
{
	if (--thing->users == 0) {
		device_memory_give(thing->device, thing->bytes);
		free(thing);
	}
}

/* --- arrays ------------------------------------------------------------------------------------------------------- */

static uint64_t or_one(size_t length)
{
	return length ? length : 1;
}

static CUresult make_array(void **array, const CUDA_ARRAY3D_DESCRIPTOR *what, unsigned int levels)
{
	CUcontext context = context_current();
	uint64_t bytes = 0;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!what || what->Width == 0 || what->Format != CU_AD_FORMAT_FLOAT ||
	    (what->NumChannels != 1 && what->NumChannels != 2 && what->NumChannels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int level = 0; level < levels; level++)
		bytes += 4 * what->NumChannels * or_one(what->Width >> level) * or_one(what->Height >> level) *
		         or_one(what->Depth >> level);
	return make(array, context->device, bytes);
}

HOOKED_2(cuArrayCreate_v2, void **, array, const CUDA_ARRAY_DESCRIPTOR *, flat)
{
	const CUDA_ARRAY3D_DESCRIPTOR what = {flat->Width, flat->Height, 0, flat->Format, flat->NumChannels, 0};

	return make_array(array, &what, 1);
}

HOOKED_2(cuArray3DCreate_v2, void **, array, const CUDA_ARRAY3D_DESCRIPTOR *, what)
{
	return make_array(array, what, 1);
}

HOOKED_3(cuMipmappedArrayCreate, void **, array, const CUDA_ARRAY3D_DESCRIPTOR *, what, unsigned int, levels)
{
	return make_array(array, what, levels);
}

HOOKED_1(cuArrayDestroy, void *, array)
{
	leave(array);
	return CUDA_SUCCESS;
}

HOOKED_1(cuMipmappedArrayDestroy, void *, array)
{
	leave(array);
	return CUDA_SUCCESS;
}

/* --- memory that is mapped ---------------------------------------------------------------------------------------- */

#define MAPPINGS 256

static struct {
	CUdeviceptr address;
	size_t bytes;
	struct thing *thing;
} mappings[MAPPINGS];

HOOKED_4(cuMemCreate, uint64_t *, handle, size_t, bytes, const CUmemAllocationProp *, what, unsigned long long, flags)
{
	void *made;

	if (bytes == 0 || bytes % PIECE != 0 || !what || what->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = make(&made, what->location.id, bytes);

	if (result == CUDA_SUCCESS)
		*handle = (uintptr_t)made;
	return result;
}

HOOKED_1(cuMemRelease, uint64_t, handle)
{
	leave((struct thing *)(uintptr_t)handle);
	return CUDA_SUCCESS;
}

/* Addresses, each used once. */
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
	static _Atomic CUdeviceptr next = UINT64_C(0x700000000000);

	*address = next;
	next += bytes;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	return CUDA_SUCCESS;
}

HOOKED_5(cuMemMap, CUdeviceptr, address, size_t, bytes, size_t, offset, uint64_t, handle, unsigned long long, flags)
{
	int place = 0;

	while (place < MAPPINGS && mappings[place].thing)
		place++;
	if (place == MAPPINGS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mappings[place].address = address;
	mappings[place].bytes = bytes;
	mappings[place].thing = (struct thing *)(uintptr_t)handle;
	mappings[place].thing->users++;
	return CUDA_SUCCESS;
}

static bool splits_mapping(CUdeviceptr address)
{
	bool splits = false;

	for (int i = 0; i < MAPPINGS; i++)
		splits |= mappings[i].thing && mappings[i].address < address &&
		          address - mappings[i].address < mappings[i].bytes;
	return splits;
}

HOOKED_2(cuMemUnmap, CUdeviceptr, address, size_t, bytes)
{
	if (splits_mapping(address) || splits_mapping(address + bytes))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < MAPPINGS; i++) {
		if (mappings[i].thing && mappings[i].address - address < bytes) {
			leave(mappings[i].thing);
			mappings[i].thing = NULL;
		}
	}
	return CUDA_SUCCESS;
}

HOOKED_2(cuMemRetainAllocationHandle, uint64_t *, handle, void *, address)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	for (int i = 0; i < MAPPINGS; i++) {
		if (mappings[i].thing && (uintptr_t)address - mappings[i].address < mappings[i].bytes) {
			mappings[i].thing->users++;
			*handle = (uintptr_t)mappings[i].thing;
			result = CUDA_SUCCESS;
		}
	}
	return result;
}

/* --- pools -------------------------------------------------------------------------------------------------------- */

struct pool {
	CUdevice device;
	uint64_t reserved, used;
	uint64_t kept; /* when a program synchronises */
	struct pool *next; /* once destroyed */
	bool is_destroyed;
};

static struct pool defaults[DEVICES];
static struct pool *destroyed; /* the next pools get the handles, the last one first */

/* The head of each allocation from a pool. */
struct given {
	struct pool *pool;
	uint64_t bytes;
};

CUresult cuDeviceGetMemPool(void **pool, CUdevice device)
{
	pthread_mutex_lock(&handles);
	defaults[device].device = device;
	pthread_mutex_unlock(&handles);
	*pool = &defaults[device];
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(void *handle, int attribute, void *value)
{
	const struct pool *pool = handle;

	pthread_mutex_lock(&handles);
	if (pool->is_destroyed)
		fatal("a question about a destroyed pool");
	*(uint64_t *)value = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? pool->reserved : pool->used;
	pthread_mutex_unlock(&handles);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(void *handle, int attribute, void *value)
{
	struct pool *pool = handle;

	if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&handles);
	pool->kept = *(uint64_t *)value;
	pthread_mutex_unlock(&handles);
	return CUDA_SUCCESS;
}

HOOKED_2(cuMemPoolCreate, void **, made, const CUmemPoolProps *, what)
{
	pthread_mutex_lock(&handles);
	struct pool *pool = destroyed ? destroyed : calloc(1, sizeof *pool);

	if (pool) {
		destroyed = pool->next;
		*pool = (struct pool){.device = what->location.id};
	}
	pthread_mutex_unlock(&handles);
	*made = pool;
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void shrink(struct pool *pool, uint64_t to)
{
	uint64_t least = (pool->used + PIECE - 1) / PIECE * PIECE;

	if (least > to)
		to = least;
	if (to < pool->reserved) {
		device_memory_give(pool->device, pool->reserved - to);
		pool->reserved = to;
	}
}

HOOKED_2(cuMemPoolTrimTo, void *, pool, size_t, kept)
{
	pthread_mutex_lock(&handles);
	shrink(pool, kept);
	pthread_mutex_unlock(&handles);
	return CUDA_SUCCESS;
}

void device_memory_synchronized(void)
{
	pthread_mutex_lock(&handles);
	for (CUdevice device = 0; device < DEVICES; device++)
		shrink(&defaults[device], defaults[device].kept);
	pthread_mutex_unlock(&handles);
}

HOOKED_1(cuMemPoolDestroy, void *, handle)
{
	struct pool *pool = handle;

	pthread_mutex_lock(&handles);
	device_memory_give(pool->device, pool->reserved);
	pool->is_destroyed = true;
	pool->next = destroyed;
	destroyed = pool;
	pthread_mutex_unlock(&handles);
	return CUDA_SUCCESS;
}

static CUresult give_locked(struct pool *pool, CUdeviceptr *address, size_t bytes)
{
	uint64_t needed = pool->used + bytes > pool->reserved ? pool->used + bytes - pool->reserved : 0;

	needed = (needed + PIECE - 1) / PIECE * PIECE;
	if (bytes > DEVICE_MEMORY_BYTES || !device_memory_take(pool->device, needed))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct given *given = calloc(1, sizeof *given);

	if (!given)
		fatal("no memory");
	*given = (struct given){pool, bytes};
	pool->reserved += needed;
	pool->used += bytes;
	*address = (uintptr_t)given;
	return CUDA_SUCCESS;
}

static CUresult give_from(struct pool *pool, CUdeviceptr *address, size_t bytes)
{
	pthread_mutex_lock(&handles);
	CUresult result = give_locked(pool, address, bytes);

	pthread_mutex_unlock(&handles);
	return result;
}

/* Of memory from pools only. */
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address)
{
	const struct given *given = (const struct given *)(uintptr_t)address;

	if (attribute != CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
		return CUDA_ERROR_NOT_SUPPORTED;
	*(int *)value = given->pool->device;
	return CUDA_SUCCESS;
}

/* A device's memory for graphs: in use until their instances are destroyed, then kept by the driver until trimmed. */
static uint64_t graphs[DEVICES], in_use[DEVICES];

static CUresult capture(CUgraph graph, CUdeviceptr *address, size_t bytes)
{
	const struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .allocated = bytes};

	*address = 0;
	return graph_add_node(graph, &content, NULL);
}

HOOKED_3(cuMemAllocAsync, CUdeviceptr *, address, size_t, bytes, CUstream, stream)
{
	CUcontext context = context_current();
	void *pool;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (capture_of(stream))
		return capture(capture_of(stream), address, bytes);
	cuDeviceGetMemPool(&pool, context->device);
	return give_from(pool, address, bytes);
}

HOOKED_3(cuMemAllocAsync_ptsz, CUdeviceptr *, address, size_t, bytes, CUstream, stream)
{
	return do_cuMemAllocAsync(address, bytes, stream);
}

HOOKED_4(cuMemAllocFromPoolAsync_ptsz, CUdeviceptr *, address, size_t, bytes, void *, pool, CUstream, stream)
{
	return give_from(pool, address, bytes);
}

HOOKED_4(cuMemAllocFromPoolAsync, CUdeviceptr *, address, size_t, bytes, void *, pool, CUstream, stream)
{
	return give_from(pool, address, bytes);
}

/* Also of memory that is of no pool. */
HOOKED_2(cuMemFreeAsync, CUdeviceptr, address, CUstream, stream)
{
	struct given *given = (struct given *)(uintptr_t)address;

	if (memory_at(address, 1))
		return memory_free(address);
	pthread_mutex_lock(&handles);
	given->pool->used -= given->bytes;
	pthread_mutex_unlock(&handles);
	free(given);
	return CUDA_SUCCESS;
}

/* --- graphs ---------------------------------------------------------------------------------------------------- */

HOOKED_5(cuGraphAddMemAllocNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, dependencies, size_t, count,
         struct graph_allocation *, what)
{
	const struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .allocated = what->bytes};

	return graph_add_node(graph, &content, node);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, struct graph_allocation *what)
{
	memset(what, 0, sizeof *what);
	what->bytes = node->allocated;
	return node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
	pthread_mutex_lock(&handles);
	*(uint64_t *)value = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? in_use[device] : graphs[device];
	pthread_mutex_unlock(&handles);
	return CUDA_SUCCESS;
}

HOOKED_1(cuDeviceGraphMemTrim, CUdevice, device)
{
	pthread_mutex_lock(&handles);
	device_memory_give(device, graphs[device] - in_use[device]);
	graphs[device] = in_use[device];
	pthread_mutex_unlock(&handles);
	return CUDA_SUCCESS;
}

CUresult device_memory_for_graph(uint64_t bytes)
{
	CUdevice device = context_current()->device;

	pthread_mutex_lock(&handles);
	uint64_t more = bytes > graphs[device] ? bytes - graphs[device] : 0;
	bool is_there = device_memory_take(device, more);

	graphs[device] += is_there ? more : 0;
	in_use[device] = is_there && bytes > in_use[device] ? bytes : in_use[device];
	pthread_mutex_unlock(&handles);
	return is_there ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void device_memory_graph_ends(void)
{
	pthread_mutex_lock(&handles);
	if (context_current())
		in_use[context_current()->device] = 0;
	pthread_mutex_unlock(&handles);
}
