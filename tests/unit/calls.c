/*
 * What calls are about: managed memory, which keeps a program from being put aside (shim/presence.h); what is launched, by which
 * launches are told apart that are held back (shim/turnstile.h); and which results say that all is lost.
 */
#include "driver/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

enum {
	PINNED = 1,
	MANAGED = 2
};

/* The third argument is an int, or the second points to properties that begin with one. */
static bool uses(int id, int third, const int *properties)
{
	const int *arguments[3] = {NULL, properties, NULL};

	memcpy(&arguments[2], &third, sizeof third);
	return calls_use_managed_memory(&(struct call){.id = id, .arguments = (void **)arguments});
}

static void test_pools(void **state)
{
	const int pinned = PINNED, managed = MANAGED;
	const int ids[] = {CALL_GET_DEFAULT_POOL, CALL_GET_POOL, CALL_SET_POOL};

	(void)state;
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
		assert_true(calls_may_use_managed_memory(ids[i]));
		assert_true(uses(ids[i], MANAGED, NULL));
		assert_false(uses(ids[i], PINNED, &managed));
	}
	assert_true(calls_may_use_managed_memory(CALL_POOL_CREATE));
	assert_true(uses(CALL_POOL_CREATE, 0, &managed));
	assert_false(uses(CALL_POOL_CREATE, MANAGED, &pinned));
	assert_false(uses(CALL_POOL_CREATE, MANAGED, NULL));
}

static void test_memory(void **state)
{
	const int ids[] = {CALL_ALLOC_MANAGED, CALL_ATTACH_MEMORY, CALL_ADVISE, CALL_ADVISE_2, CALL_PREFETCH, CALL_PREFETCH_2,
	                   CALL_PREFETCH_BATCH, CALL_DISCARD_BATCH, CALL_DISCARD_AND_PREFETCH_PER_THREAD};

	(void)state;
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
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

static struct launched_work read_work(int id, const void *arguments)
{
	return calls_read_work(&(struct call){.id = id, .arguments = (void **)(uintptr_t)arguments});
}

static void assert_work(struct launched_work work, const void *what, uint32_t x, uint32_t y, uint32_t z, CUstream stream)
{
	assert_ptr_equal(work.what, what);
	assert_int_equal(work.grid[0], x);
	assert_int_equal(work.grid[1], y);
	assert_int_equal(work.grid[2], z);
	assert_ptr_equal(work.stream, stream);
}

static void test_work(void **state)
{
	const CUlaunchConfig config = {.gridDimX = 2, .gridDimY = 3, .gridDimZ = 4, .hStream = STREAM};
	const struct {
		const CUlaunchConfig *config;
		CUfunction function;
	} by_config = {&config, FUNCTION}, by_nothing = {NULL, FUNCTION};
	const struct {
		CUgraphExec exec;
		CUstream stream;
	} graph = {EXEC, NULL};

	(void)state;
	assert_work(read_work(CALL_LAUNCH, &by_list), FUNCTION, 2, 3, 4, STREAM);
	assert_work(read_work(CALL_LAUNCH_COOPERATIVE, &by_list), FUNCTION, 2, 3, 4, STREAM);
	assert_work(read_work(CALL_LAUNCH_EX, &by_config), FUNCTION, 2, 3, 4, STREAM);
	assert_null(read_work(CALL_LAUNCH_EX, &by_nothing).what);
	assert_work(read_work(CALL_LAUNCH_GRID_ASYNC, &by_grid), FUNCTION, 2, 3, 1, STREAM);
	assert_work(read_work(CALL_LAUNCH_GRID, &by_grid), FUNCTION, 2, 3, 1, CU_STREAM_LEGACY);
	assert_work(read_work(CALL_LAUNCH_OLDEST, &by_grid), FUNCTION, 1, 1, 1, CU_STREAM_LEGACY);
	assert_work(read_work(CALL_GRAPH_LAUNCH, &graph), EXEC, 0, 0, 0, CU_STREAM_LEGACY);
	assert_work(read_work(CALL_GRAPH_LAUNCH_PER_THREAD, &graph), EXEC, 0, 0, 0, CU_STREAM_PER_THREAD);
}

static void test_lost(void **state)
{
	const int lost[] = {CUDA_ERROR_ILLEGAL_ADDRESS, 702, 709, 710, 714, 715, 716, 717, 718, CUDA_ERROR_LAUNCH_FAILED,
	                    805, 806, 807, 808, 809, 810, CUDA_ERROR_UNKNOWN};
	const int usual[] = {CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_HANDLE, 600, 701,
	                     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
	                     CUDA_ERROR_NOT_SUPPORTED, 900, CUDA_ERROR_INVALID_CLUSTER_SIZE};

	(void)state;
	for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++)
		assert_true(calls_is_lost(lost[i]));
	for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
		assert_false(calls_is_lost(usual[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
