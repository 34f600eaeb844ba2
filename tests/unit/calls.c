/*
 * What calls are about: managed memory, which keeps a program from being suspended (time/turns/memory_use.h); what is
 * launched; and which results say that all is lost.
 */
#include "../cases.h"
#include "driver/calls.h"

enum { PINNED = 1, MANAGED = 2 };

/* The third argument is an int, or the second points to properties that begin with one. */
static bool uses(int id, int third, const int *properties)
{
	const int *arguments[3] = {NULL, properties, NULL};

	memcpy(&arguments[2], &third, sizeof third);
	return calls_use_managed_memory(&(struct call){.id = id, .arguments = (void **)arguments});
}

TEST(pools)
{
	const int pinned = PINNED, managed = MANAGED;
	const int ids[] = {CALL_GET_DEFAULT_POOL, CALL_GET_POOL, CALL_SET_POOL};

	for (size_t i = 0; i < COUNT_OF(ids); i++) {
		assert_true(calls_may_use_managed_memory(ids[i]));
		assert_true(uses(ids[i], MANAGED, NULL));
		assert_false(uses(ids[i], PINNED, &managed));
	}
	assert_true(calls_may_use_managed_memory(CALL_POOL_CREATE));
	assert_true(uses(CALL_POOL_CREATE, 0, &managed));
	assert_false(uses(CALL_POOL_CREATE, MANAGED, &pinned));
	assert_false(uses(CALL_POOL_CREATE, MANAGED, NULL));
}

TEST(memory)
{
	const int ids[] = {CALL_ALLOC_MANAGED, CALL_ATTACH_MEMORY, CALL_ADVISE, CALL_ADVISE_2, CALL_PREFETCH, CALL_PREFETCH_2,
	                   CALL_PREFETCH_BATCH, CALL_DISCARD_BATCH, CALL_DISCARD_AND_PREFETCH_PER_THREAD};

	for (size_t i = 0; i < COUNT_OF(ids); i++)
		assert_true(uses(ids[i], PINNED, NULL));
	assert_false(uses(CALL_LAUNCH, MANAGED, NULL));
	assert_false(uses(CALL_EXPORT_POOL, MANAGED, NULL));
}

/* --- what is launched --------------------------------------------------------------------------------------------- */

#define FUNCTION ((CUfunction)0x100)
#define STREAM ((CUstream)0x200)
#define EXEC ((CUgraphExec)0x300)

/* As the driver lays them out. */
static const struct {
	CUfunction function;
	unsigned int grid[3], block[3], dynamic_bytes;
	CUstream stream;
} by_list = {FUNCTION, {2, 3, 4}, {5, 6, 7}, 8, STREAM};

static const struct {
	CUfunction function;
	int width, height;
	CUstream stream;
} by_grid = {FUNCTION, 2, 3, STREAM};

struct by_config {
	const CUlaunchConfig *config;
	CUfunction function;
};

static struct launched_work read_work(int id, const void *arguments)
{
	return calls_read_work(&(struct call){.id = id, .arguments = (void **)(uintptr_t)arguments});
}

static void assert_work(struct launched_work work, const void *what, CUstream stream)
{
	assert_ptr_equal(work.what, what);
	assert_ptr_equal(work.stream, stream);
}

TEST(work)
{
	const CUlaunchConfig config = {.gridDimX = 2, .gridDimY = 3, .gridDimZ = 4, .hStream = STREAM};
	const struct by_config by_config = {&config, FUNCTION}, by_nothing = {NULL, FUNCTION};
	const struct {
		CUgraphExec exec;
		CUstream stream;
	} graph = {EXEC, NULL};

	assert_work(read_work(CALL_LAUNCH, &by_list), FUNCTION, STREAM);
	assert_work(read_work(CALL_LAUNCH_COOPERATIVE, &by_list), FUNCTION, STREAM);
	assert_work(read_work(CALL_LAUNCH_EX, &by_config), FUNCTION, STREAM);
	assert_null(read_work(CALL_LAUNCH_EX, &by_nothing).what);
	assert_work(read_work(CALL_LAUNCH_GRID_ASYNC, &by_grid), FUNCTION, STREAM);
	assert_work(read_work(CALL_LAUNCH_GRID, &by_grid), FUNCTION, CU_STREAM_LEGACY);
	assert_work(read_work(CALL_LAUNCH_OLDEST, &by_grid), FUNCTION, CU_STREAM_LEGACY);
	assert_work(read_work(CALL_GRAPH_LAUNCH, &graph), EXEC, CU_STREAM_LEGACY);
	assert_work(read_work(CALL_GRAPH_LAUNCH_PER_THREAD, &graph), EXEC, CU_STREAM_PER_THREAD);
}

/* --- on several devices ------------------------------------------------------------------------------------------- */

static CUDA_LAUNCH_PARAMS on_two[] = {
	{FUNCTION, 2, 3, 4, 5, 6, 7, 8, STREAM, NULL},
	{FUNCTION, 3, 3, 4, 5, 6, 6, 9, NULL, NULL},
};

struct by_devices {
	const CUDA_LAUNCH_PARAMS *list;
	unsigned int count, flags;
};

static struct call call_on_devices(struct by_devices *arguments, struct frame *frame)
{
	return (struct call){.id = CALL_LAUNCH_ON_DEVICES, .arguments = (void **)arguments, .frame = frame};
}

static struct frame enter_on_devices(const CUDA_LAUNCH_PARAMS *list, unsigned int count)
{
	struct by_devices arguments = {list, count, 0};
	struct frame frame = {.nested = 0};
	const struct call call = call_on_devices(&arguments, &frame);

	calls_enter(&call);
	return frame;
}

static void assert_shape(struct qmd_shape shape, unsigned int cooperative, unsigned int threads, unsigned int bytes)
{
	assert_int_equal(shape.cooperative, cooperative);
	assert_int_equal(shape.threads, threads);
	assert_int_equal(shape.shared_bytes, bytes);
}

/* The frame has room for each launch, and a stream for a single launch only. */
TEST(launches_on_devices)
{
	struct frame one = enter_on_devices(on_two, 1), two = enter_on_devices(on_two, 2);

	assert_ptr_equal(one.stream, STREAM);
	assert_shape(one.shape, 24, 210, 8);
	assert_null(two.stream);
	assert_shape(two.shape, 36, 210, 9);
	assert_shape(enter_on_devices(NULL, 2).shape, 0, 0, 0);
	assert_shape(enter_on_devices(on_two, 0).shape, 0, 0, 0);
	assert_shape(enter_on_devices(on_two, UINT_MAX).shape, 0, 0, 0);
}

/* The gate would decide for the GPU of the call's context, and the launches' GPUs may differ. */
TEST(work_on_devices)
{
	struct by_devices one = {on_two, 1, 0}, two = {on_two, 2, 0};

	assert_work(read_work(CALL_LAUNCH_ON_DEVICES, &one), NULL, STREAM);
	assert_work(read_work(CALL_LAUNCH_ON_DEVICES, &two), NULL, NULL);
	assert_true(read_work(CALL_LAUNCH_ON_DEVICES, &two).waits_for_others);
}

/* The program's list does not change. */
TEST(refused_on_devices)
{
	struct by_devices arguments = {on_two, 2, 0};
	struct frame frame = {.nested = 0};
	const struct call call = call_on_devices(&arguments, &frame);

	calls_refuse(&call);
	assert_int_equal(arguments.count, 1);
	assert_int_equal(arguments.list->gridDimX, 0);
	assert_ptr_equal(arguments.list->function, FUNCTION);
	assert_int_equal(on_two[0].gridDimX, 2);
}

/* Cooperative ones, and those that communicate with other GPUs, as NCCL's do. */
TEST(waits_for_others)
{
	CUlaunchAttribute attributes[] = {{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 1, 1}},
	                                  {.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN}};
	CUlaunchConfig config = {.gridDimX = 2, .hStream = STREAM, .attrs = attributes, .numAttrs = 2};
	const struct by_config by_config = {&config, FUNCTION};

	assert_false(read_work(CALL_LAUNCH, &by_list).waits_for_others);
	assert_true(read_work(CALL_LAUNCH_COOPERATIVE, &by_list).waits_for_others);
	assert_false(read_work(CALL_LAUNCH_EX, &by_config).waits_for_others);
	attributes[1].value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	assert_true(read_work(CALL_LAUNCH_EX, &by_config).waits_for_others);
	attributes[1] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	assert_true(read_work(CALL_LAUNCH_EX, &by_config).waits_for_others);
}

TEST(streams_that_wait)
{
	CUstream first[] = {STREAM}, fourth[] = {NULL, NULL, NULL, STREAM}, none[] = {NULL, NULL, NULL, NULL};
	struct call event = {.id = CALL_WAIT_EVENT, .arguments = (void **)first};
	struct call semaphores = {.id = CALL_WAIT_SEMAPHORES, .arguments = (void **)fourth};
	struct call host = {.id = CALL_HOST_FUNCTION_PER_THREAD, .arguments = (void **)none};

	assert_ptr_equal(calls_waiting_stream(&event), STREAM);
	assert_ptr_equal(calls_waiting_stream(&semaphores), STREAM);
	assert_ptr_equal(calls_waiting_stream(&host), CU_STREAM_PER_THREAD);
	host.id = CALL_HOST_FUNCTION;
	assert_ptr_equal(calls_waiting_stream(&host), CU_STREAM_LEGACY);
	assert_true(calls_make_stream_wait(CALL_WAIT_EVENT) && calls_make_stream_wait(CALL_BATCH_2_PER_THREAD));
	assert_false(calls_make_stream_wait(CALL_LAUNCH) || calls_make_stream_wait(CALL_GRAPH_LAUNCH));
}

/* The driver clamps the number of levels. */
TEST(bytes_of_mipmaps)
{
	static const struct {
		struct call_array array;
		unsigned int levels;
		uint64_t bytes;
	} rows[] = {
		{{8, 8, 0, 0x20, 1, 0}, 1, 256},
		{{8, 8, 0, 0x20, 1, 0}, 0, 256},
		{{8, 8, 0, 0x20, 1, 0}, 2, 256 + 64},
		{{8, 8, 0, 0x20, 1, 0}, UINT_MAX, 256 + 64 + 16 + 4},
		{{8, 1, 0, 0x20, 1, 0}, UINT_MAX, 32 + 16 + 8 + 4},
		{{4, 4, 4, 0x20, 1, 0}, UINT_MAX, 256 + 32 + 4},
		{{4, 4, 4, 0x20, 1, 0x01}, UINT_MAX, 256 + 64 + 16}, /* four layers */
		{{4, 4, 6, 0x20, 1, 0x04}, UINT_MAX, 384 + 96 + 24}, /* six faces */
		{{8, 8, 0, 0x20, 1, 0x40}, UINT_MAX, 0},             /* mapped later */
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct call_create_array arguments = {NULL, &rows[i].array, rows[i].levels};
		const struct call call = {.id = CALL_MIPMAPS_CREATE, .arguments = (void **)&arguments};

		ROW("row %zu", i);
		assert_int_equal(calls_bytes_of_array(&call), rows[i].bytes);
	}
}

RUN_TESTS(NULL, NULL)
