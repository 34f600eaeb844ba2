/*
 * A limit of memory: how much each function may still allocate, how much is given back, and which sizes the program
 * sees.
 *
 * gpus: h200 turing
 */
#include "../cases.h"
#include "support/limited.h"

static struct gpu_under_test gpu;

#define CHUNK (8 * MIB)

/* In use when the case began: on hardware, the driver's own memory. */
static size_t at_begin;

/* For each chunk, a real driver may take some memory for itself. */
#define SLACK (gpu_is_simulated() ? 0 : 6 * MIB)

/* From here on there is room for n chunks. */
static void leave_room(unsigned int chunks)
{
	limited_to(UINT64_C(1) << 30);
	at_begin = (UINT64_C(1) << 30) - limited_free() + SLACK;
	limited_to(at_begin + chunks * CHUNK);
	assert_in_range(limited_free(), chunks * CHUNK, chunks * CHUNK + SLACK + 1023);
}

/* Gives back the driver's rest of the case before. */
static void trim(void)
{
	void *current;

	gpu_check(cuDeviceGetMemPool(&current, gpu.device));
	gpu_check(cuMemPoolTrimTo(current, 0));
	gpu_check(cuDeviceGraphMemTrim(gpu.device));
}

/* As without MPS: the kernel driver says how much memory this process has. */
static int simulate_kernel_driver(void **state)
{
	(void)state;
	return setenv("SIM_FAULTS", "tells-memory", 1);
}

FIXTURE(set_up)
{
	gpu_initialise();
	gpu_open(&gpu, 0);
	trim();
	leave_room(4);
}

FIXTURE(tear_down)
{
	limited_to(SEGMENT_MEMORY_OFF);
	gpu_close(&gpu);
}

/* --- functions that allocate -------------------------------------------------------------------------------------- */

typedef CUresult maker(uint64_t *made);
typedef CUresult ender(uint64_t made);

static CUresult make_plain(uint64_t *made)
{
	return cuMemAlloc_v2((CUdeviceptr *)made, CHUNK);
}

static CUresult make_managed(uint64_t *made)
{
	return cuMemAllocManaged((CUdeviceptr *)made, CHUNK, 1);
}

static CUresult make_pitched(uint64_t *made)
{
	size_t pitch;

	return cuMemAllocPitch_v2((CUdeviceptr *)made, &pitch, 2048, CHUNK / 2048, 4);
}

static CUresult end_address(uint64_t made)
{
	return cuMemFree_v2(made);
}

static CUresult make_array(uint64_t *made)
{
	const CUDA_ARRAY_DESCRIPTOR what = {1024, CHUNK / 4096, CU_AD_FORMAT_FLOAT, 1};

	return cuArrayCreate_v2((void **)made, &what);
}

static CUresult make_array_3d(uint64_t *made)
{
	const CUDA_ARRAY3D_DESCRIPTOR what = {1024, CHUNK / 4096 / 4, 2, CU_AD_FORMAT_FLOAT, 2, 0};

	return cuArray3DCreate_v2((void **)made, &what);
}

static CUresult end_array(uint64_t made)
{
	return cuArrayDestroy((void *)(uintptr_t)made);
}

static CUresult make_mipmaps(uint64_t *made)
{
	const CUDA_ARRAY3D_DESCRIPTOR what = {1024, 1536, 0, CU_AD_FORMAT_FLOAT, 1, 0}; /* 6 + 1.5 MiB */

	return cuMipmappedArrayCreate((void **)made, &what, 2);
}

static CUresult end_mipmaps(uint64_t made)
{
	return cuMipmappedArrayDestroy((void *)(uintptr_t)made);
}

static CUmemAllocationProp on_device(void)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.device}};
}

static CUresult make_handle(uint64_t *made)
{
	const CUmemAllocationProp what = on_device();

	return cuMemCreate(made, CHUNK, &what, 0);
}

static CUresult end_handle(uint64_t made)
{
	return cuMemRelease(made);
}

static void *pool;

static CUresult make_from_pool(uint64_t *made)
{
	return cuMemAllocFromPoolAsync((CUdeviceptr *)made, CHUNK, pool, NULL);
}

static CUresult make_async(uint64_t *made)
{
	return cuMemAllocAsync((CUdeviceptr *)made, CHUNK, NULL);
}

static CUresult make_from_pool_per_thread(uint64_t *made)
{
	return cuMemAllocFromPoolAsync_ptsz((CUdeviceptr *)made, CHUNK, pool, NULL);
}

static CUresult make_async_per_thread(uint64_t *made)
{
	return cuMemAllocAsync_ptsz((CUdeviceptr *)made, CHUNK, NULL);
}

static CUresult end_async_per_thread(uint64_t made)
{
	CUresult result = cuMemFreeAsync(made, CU_STREAM_PER_THREAD);

	return result == CUDA_SUCCESS ? cuCtxSynchronize() : result;
}

static CUresult end_async(uint64_t made)
{
	CUresult result = cuMemFreeAsync(made, NULL);

	return result == CUDA_SUCCESS ? cuStreamSynchronize(NULL) : result;
}

static const struct {
	const char *name;
	maker *make;
	ender *end;
} ways[] = {
	{"cuMemAlloc", make_plain, end_address},
	{"cuMemAllocManaged", make_managed, end_address},
	{"cuMemAllocPitch", make_pitched, end_address},
	{"cuArrayCreate", make_array, end_array},
	{"cuArray3DCreate", make_array_3d, end_array},
	{"cuMipmappedArrayCreate", make_mipmaps, end_mipmaps},
	{"cuMemCreate", make_handle, end_handle},
	{"cuMemAllocFromPoolAsync", make_from_pool, end_async},
	{"cuMemAllocFromPoolAsync_ptsz", make_from_pool_per_thread, end_async_per_thread},
	{"cuMemAllocAsync", make_async, end_async},
	{"cuMemAllocAsync_ptsz", make_async_per_thread, end_async_per_thread},
};

static CUmemPoolProps in_pool(void)
{
	return (CUmemPoolProps){
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.device}};
}

static void make_pool(void)
{
	const CUmemPoolProps what = in_pool();

	gpu_check(cuMemPoolCreate(&pool, &what));
}

/* Comes first: nothing has asked for the context's bytes yet, more than four chunks. */
TEST_WITH(NULL, tear_down, the_first_limit_counts_the_context)
{
	struct topology_user own = {.pid = getpid()};
	uint64_t made, more, free_bytes;

	gpu_initialise();
	gpu_open(&gpu, 0);
	if (!topology_read_memory(gpu.topology->pci, &own, 1, &free_bytes) || own.bytes == 0)
		gpu_skip("the kernel driver does not tell how much memory a process has");
	gpu_check(make_plain(&made));
	limited_to(4 * CHUNK);
	assert_int_equal(make_plain(&more), CUDA_ERROR_OUT_OF_MEMORY);
	gpu_check(end_address(made));
}

/* The fifth is refused; after a free, there is room again. */
TEST_WITH(set_up, tear_down, each_way_is_refused)
{
	uint64_t made[5];

	make_pool();
	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		ROW("%s", ways[i].name);
		for (int n = 0; n < 4; n++)
			gpu_check(ways[i].make(&made[n]));
		assert_int_equal(ways[i].make(&made[4]), CUDA_ERROR_OUT_OF_MEMORY);
		assert_true(limited_free() < 4 * MIB + SLACK);
		gpu_check(ways[i].end(made[0]));
		gpu_check(ways[i].make(&made[0]));
		assert_int_equal(ways[i].make(&made[4]), CUDA_ERROR_OUT_OF_MEMORY);
		for (int n = 0; n < 4; n++)
			gpu_check(ways[i].end(made[n]));
	}
	gpu_check(cuMemPoolDestroy(pool));
	assert_in_range(limited_free(), 0, 4 * CHUNK + SLACK + 1023);
	gpu_check(make_plain(&made[0]));
	gpu_check(end_address(made[0]));
}

/* The driver chooses the pitch, and the memory is counted by the pitch. */
TEST_WITH(set_up, tear_down, a_pitch)
{
	size_t before = limited_free(), pitch;
	CUdeviceptr address;

	gpu_check(cuMemAllocPitch_v2(&address, &pitch, 2 * MIB + 1, 3, 4));
	assert_in_range(before - limited_free(), pitch * 3, pitch * 3 + 2 * MIB + SLACK);
	gpu_check(cuMemFree_v2(address));
}

static CUresult synchronize_by_event(void)
{
	CUevent event;

	gpu_check(cuEventCreate(&event, 0));
	gpu_check(cuEventRecord(event, NULL));
	CUresult result = cuEventSynchronize(event);

	gpu_check(cuEventDestroy_v2(event));
	return result;
}

static CUresult synchronize_stream(void)
{
	return cuStreamSynchronize(NULL);
}

static CUresult synchronize_context(void)
{
	return cuCtxSynchronize();
}

/* Other processes see at once that a pool has given memory back. */
TEST_WITH(set_up, tear_down, a_synchronisation_empties_pools)
{
	static CUresult (*const synchronize[])(void) = {synchronize_stream, synchronize_context, synchronize_by_event};
	uint64_t before = limited_in_use(&gpu), made;

	for (size_t i = 0; i < COUNT_OF(synchronize); i++) {
		ROW("way %zu", i);
		gpu_check(make_async(&made));
		assert_true(limited_in_use(&gpu) >= before + CHUNK);
		gpu_check(cuMemFreeAsync(made, NULL));
		gpu_check(synchronize[i]());
		assert_in_range(limited_in_use(&gpu), before, before + SLACK + 1023);
	}
}

/* The driver frees memory of cuMemAlloc there as well. */
TEST_WITH(set_up, tear_down, memory_of_no_pool_is_freed_in_a_stream)
{
	uint64_t made;

	gpu_check(make_plain(&made));
	gpu_check(cuMemFreeAsync(made, NULL));
	gpu_check(cuCtxSynchronize());
	assert_in_range(limited_free(), 4 * CHUNK, 4 * CHUNK + SLACK + 1023);
}

/* From now on a synchronization leaves unused memory in the pool, up to so many bytes. */
static void keep_in_pool(uint64_t bytes)
{
	void *current;

	gpu_check(cuDeviceGetMemPool(&current, gpu.device));
	gpu_check(cuMemPoolSetAttribute(current, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

/* Unused memory of a pool goes to other allocations. A real pool shrinks by blocks of several chunks. */
TEST_WITH(set_up, tear_down, a_pool_gives_way)
{
	uint64_t made[4], other, before = limited_in_use(&gpu);

	keep_in_pool(UINT64_MAX);
	for (int i = 0; i < 4; i++)
		gpu_check(make_async(&made[i]));
	assert_int_equal(make_plain(&other), CUDA_ERROR_OUT_OF_MEMORY);
	for (int i = 0; i < 4; i++)
		gpu_check(end_async(made[i]));
	assert_true(limited_in_use(&gpu) >= before + 4 * CHUNK);
	gpu_check(make_plain(&other));
	assert_in_range(limited_in_use(&gpu), before + CHUNK, before + CHUNK + SLACK + 1023);
	gpu_check(end_address(other));
	keep_in_pool(0);
}

static CUresult add_allocation(CUgraph graph, struct graph_allocation *what)
{
	return cuGraphAddMemAllocNode(&(CUgraphNode){NULL}, graph, NULL, 0, what);
}

static CUresult add_generic(CUgraph graph, struct graph_allocation *what)
{
	CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .allocation = *what};

	return cuGraphAddNode_v2(&(CUgraphNode){NULL}, graph, NULL, NULL, 0, &parameters);
}

/* Two chunks are in use, and the graph wants three. */
static void launch_graph_with(CUresult (*add)(CUgraph graph, struct graph_allocation *what),
                              CUresult (*launch)(CUgraphExec exec, CUstream stream))
{
	const CUmemPoolProps pool_of_graph = in_pool();
	struct graph_allocation what = {.bytes = 3 * CHUNK};
	uint64_t held[2];
	CUgraphExec exec;
	CUgraph graph;

	memcpy(what.pool, &pool_of_graph, sizeof what.pool);
	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(add(graph, &what));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 2; i++)
		gpu_check(make_plain(&held[i]));
	assert_int_equal(cuGraphUpload(exec, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuGraphUpload_ptsz(exec, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(launch(exec, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	gpu_check(end_address(held[1]));
	gpu_check(launch(exec, NULL));
	assert_true(limited_free() < MIB + SLACK);
	assert_int_equal(make_plain(&held[1]), CUDA_ERROR_OUT_OF_MEMORY);
	gpu_check(end_address(held[0]));
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

/* Comes first of the cases with graphs: from the first allocating node on, all graphs are looked at. */
TEST_WITH(set_up, tear_down, allocations_of_graphs_by_the_generic_call)
{
	if (!cuGraphAddNode_v2)
		gpu_skip("this driver has no cuGraphAddNode_v2");
	launch_graph_with(add_generic, cuGraphLaunch);
}

TEST_WITH(set_up, tear_down, allocations_of_graphs)
{
	launch_graph_with(add_allocation, cuGraphLaunch);
	trim();
	leave_room(4);
	launch_graph_with(add_allocation, cuGraphLaunch_ptsz);
}

TEST_WITH(set_up, tear_down, a_captured_allocation_is_the_graphs)
{
	CUstream stream = gpu_new_stream();
	CUdeviceptr address;
	CUgraphExec exec;
	CUgraph graph;

	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpu_check(cuMemAllocAsync(&address, 5 * CHUNK, stream));
	gpu_check(cuStreamEndCapture(stream, &graph));
	assert_in_range(limited_free(), 4 * CHUNK, 4 * CHUNK + SLACK + 1023);
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
	gpu_check(cuStreamDestroy_v2(stream));
}

/* A mapping keeps the memory when the handle has been released; so does cuMemRetainAllocationHandle. */
TEST_WITH(set_up, tear_down, mapped_memory)
{
	uint64_t handle, again;
	CUdeviceptr address;

	gpu_check(make_handle(&handle));
	gpu_check(cuMemAddressReserve(&address, CHUNK, 0, 0, 0));
	gpu_check(cuMemMap(address, CHUNK, 0, handle, 0));
	gpu_check(cuMemRelease(handle));
	assert_in_range(limited_free(), 3 * CHUNK, 3 * CHUNK + SLACK + 1023);
	for (int i = 0; i < 2; i++)
		gpu_check(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + MIB)));
	gpu_check(cuMemUnmap(address, CHUNK));
	assert_in_range(limited_free(), 3 * CHUNK, 3 * CHUNK + SLACK + 1023);
	gpu_check(cuMemRelease(again));
	assert_in_range(limited_free(), 3 * CHUNK, 3 * CHUNK + SLACK + 1023);
	gpu_check(cuMemRelease(again));
	assert_in_range(limited_free(), 4 * CHUNK, 4 * CHUNK + SLACK + 1023);
	gpu_check(cuMemAddressFree(address, CHUNK));
}

/* The driver unmaps whole mappings only. */
TEST_WITH(set_up, tear_down, a_part_is_not_unmapped)
{
	uint64_t handle;
	CUdeviceptr address;

	gpu_check(make_handle(&handle));
	gpu_check(cuMemAddressReserve(&address, CHUNK, 0, 0, 0));
	gpu_check(cuMemMap(address, CHUNK, 0, handle, 0));
	gpu_check(cuMemRelease(handle));
	assert_int_equal(cuMemUnmap(address, CHUNK / 2), CUDA_ERROR_INVALID_VALUE);
	assert_in_range(limited_free(), 3 * CHUNK, 3 * CHUNK + SLACK + 1023);
	gpu_check(cuMemUnmap(address, CHUNK));
	assert_in_range(limited_free(), 4 * CHUNK, 4 * CHUNK + SLACK + 1023);
	gpu_check(cuMemAddressFree(address, CHUNK));
}

/* --- other cases -------------------------------------------------------------------------------------------------- */

TEST_WITH(set_up, tear_down, what_the_program_sees)
{
	size_t total, free_bytes, whole;

	limited_to(SEGMENT_MEMORY_OFF);
	gpu_check(cuDeviceTotalMem_v2(&whole, gpu.device));
	limited_to(at_begin + 4 * CHUNK);
	gpu_check(cuDeviceTotalMem_v2(&total, gpu.device));
	assert_int_equal(total, at_begin + 4 * CHUNK);
	gpu_check(cuMemGetInfo_v2(&free_bytes, &total));
	assert_int_equal(total, at_begin + 4 * CHUNK);
	limited_to(4 * whole);
	gpu_check(cuDeviceTotalMem_v2(&total, gpu.device));
	assert_int_equal(total, whole);
}

/* Nothing in use is taken away. */
TEST_WITH(set_up, tear_down, live)
{
	uint64_t made[3], more;

	for (int i = 0; i < 3; i++)
		gpu_check(make_plain(&made[i]));
	limited_to(at_begin + 2 * CHUNK);
	assert_int_equal(limited_free(), 0);
	assert_int_equal(make_plain(&more), CUDA_ERROR_OUT_OF_MEMORY);
	gpu_check(end_address(made[0]));
	assert_int_equal(make_plain(&more), CUDA_ERROR_OUT_OF_MEMORY);
	limited_to(at_begin + 3 * CHUNK);
	gpu_check(make_plain(&made[0]));
	for (int i = 0; i < 3; i++)
		gpu_check(end_address(made[i]));
}

/* The driver refuses for reasons of its own: the reserved bytes are there again. */
TEST_WITH(set_up, tear_down, the_drivers_own_refusals)
{
	CUdeviceptr address;
	size_t whole, pitch;

	limited_to(SEGMENT_MEMORY_OFF);
	assert_int_equal(cuMemAllocPitch_v2(&address, &pitch, (size_t)3 << 40, 1, 3), CUDA_ERROR_INVALID_VALUE);
	gpu_check(cuDeviceTotalMem_v2(&whole, gpu.device));
	limited_to(at_begin + 2 * whole);
	assert_int_equal(cuMemAlloc_v2(&address, whole + whole / 2), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuMemAlloc_v2(&address, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemFree_v2(12345), CUDA_ERROR_INVALID_VALUE);
	limited_to(at_begin + 4 * CHUNK);
	assert_in_range(limited_free(), 4 * CHUNK, 4 * CHUNK + SLACK + 1023);
}

/* A context's memory ends with the context. */
TEST_WITH(set_up, tear_down, a_context_ends)
{
	uint64_t kept, made;
	CUcontext other;

	gpu_check(make_plain(&kept));
	gpu_check(cuCtxCreate_v2(&other, 0, gpu.device));
	size_t before = limited_free();

	gpu_check(make_plain(&made));
	assert_in_range(limited_free(), before - CHUNK - SLACK - 1023, before - CHUNK + SLACK + 1023);
	gpu_check(cuCtxDestroy_v2(other));
	gpu_check(cuCtxSetCurrent(gpu.context));
	assert_in_range(limited_free(), before - SLACK, 3 * CHUNK + SLACK + 1023);
	gpu_check(end_address(kept));
}

#define CONTEXT_LEAST (32 * MIB) /* beside the program's own memory */

/* The driver's own memory as well ends with the last context. */
TEST_WITH(set_up, NULL, the_last_context_ends)
{
	CUcontext other;
	uint64_t with_one = limited_in_use(&gpu);

	gpu_check(cuCtxCreate_v2(&other, 0, gpu.device));
	gpu_check(cuCtxDestroy_v2(other));
	assert_true(limited_in_use(&gpu) >= with_one);
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_close(&gpu);
	uint64_t with_none = limited_in_use(&gpu);

	limited_to(SEGMENT_MEMORY_OFF);
	if (with_one < CONTEXT_LEAST)
		gpu_skip("the kernel driver does not tell how much memory a process has");
	assert_true(with_none + CONTEXT_LEAST <= with_one);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

#define THREADS 8
#define ROUNDS 300

static atomic_uint chunks_there;

/* Never more than four chunks at once, and no allocation with room is refused: each thread takes one, and there is
 * room for four. */
static void *take_and_give(void *data)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t made;
		CUresult result = make_plain(&made);

		if (result == CUDA_SUCCESS) {
			assert_true(atomic_fetch_add(&chunks_there, 1) < 4);
			sched_yield();
			atomic_fetch_sub(&chunks_there, 1);
			gpu_check(end_address(made));
		} else {
			assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
		}
	}
	return data;
}

TEST_WITH(set_up, tear_down, threads_at_once)
{
	threads_run(THREADS, take_and_give, NULL, 0);
	assert_in_range(limited_free(), 4 * CHUNK, 4 * CHUNK + SLACK + 1023);
}

static atomic_bool is_over;

static void *create_and_destroy(void *data)
{
	const CUmemPoolProps what = in_pool();
	void *made;

	gpu_check(cuCtxSetCurrent(gpu.context));
	while (!atomic_load(&is_over)) {
		gpu_check(cuMemPoolCreate(&made, &what));
		gpu_check(cuMemPoolDestroy(made));
	}
	return data;
}

static void *synchronize(void *data)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	while (!atomic_load(&is_over))
		gpu_check(cuCtxSynchronize());
	return data;
}

/* A new pool counts, even with the handle of a pool whose destruction has not returned yet. */
TEST_WITH(set_up, tear_down, pools_come_and_go)
{
	pthread_t threads[4];
	unsigned int uncounted = 0;
	CUdeviceptr made;
	uint64_t other;

	atomic_store(&is_over, false);
	for (size_t i = 0; i < COUNT_OF(threads); i++)
		threads[i] = thread_start(i < 3 ? create_and_destroy : synchronize, NULL);
	for (int i = 0; i < 10 * ROUNDS; i++) {
		make_pool();
		gpu_check(cuMemAllocFromPoolAsync(&made, 4 * CHUNK, pool, NULL));
		if (make_plain(&other) == CUDA_SUCCESS) {
			uncounted++;
			gpu_check(end_address(other));
		}
		gpu_check(end_async(made));
		gpu_check(cuMemPoolDestroy(pool));
	}
	atomic_store(&is_over, true);
	for (size_t i = 0; i < COUNT_OF(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(uncounted, 0);
	assert_in_range(limited_free(), 4 * CHUNK, 4 * CHUNK + SLACK + 1023);
}

RUN_TESTS_IN(simulate_kernel_driver, NULL, NULL, NULL)
