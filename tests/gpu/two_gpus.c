/* Each GPU of a process has a partition of its own: a launch runs in the one of its context's GPU. */
/* gpus: h200-x2 */
#include "../cases.h"
#include "state/kernels/counts_read.h"
#include "support/limited.h"

#define LAUNCHES 20

static struct gpu_under_test gpus[2];
static int count;

static void need_two(void)
{
	if (count < 2)
		gpu_skip("there is one GPU only");
}

/* Drivers give a handle again. Data of the context that had it before is then no longer valid. */
TEST(context_handle_reused_on_another_gpu)
{
	struct tpcset own[] = {gpu_range(0, 3), gpu_range(8, 11)};
	struct gpu_under_test gpu;
	CUcontext before = NULL;
	int again = 0;

	need_two();
	for (unsigned int i = 0; i < 2; i++)
		gpu_set_partition(&gpus[i], own[i]);
	for (int i = 0; i < 6; i++) {
		gpu_open(&gpu, i % 2);
		gpu_assert_runs_in(&gpu, NULL, own[i % 2]);
		again += gpu.context == before;
		before = gpu.context;
		gpu_close(&gpu);
	}
	print_message("# %d of 5 contexts had the handle of the one before, on the other GPU\n", again);
}

FIXTURE(open_gpus)
{
	count = gpu_initialise();
	for (int i = 0; i < 2 && i < count; i++)
		gpu_open(&gpus[i], i);
}

static struct counts_of_gpu kernels_at_rest(const struct gpu_under_test *gpu)
{
	gpu_check(cuCtxSetCurrent(gpu->context));
	struct counts_of_gpu kernels = gpu_kernels_at_rest(gpu);

	if (kernels.gaps & 1 << COUNTS_NO_SLOTS)
		gpu_skip("this GPU's launch descriptors have no slot that counts");
	assert_int_equal(kernels.gaps, 0);
	return kernels;
}

/* One thread, on one GPU and the other in turns. */
TEST(kernels_are_counted_on_their_gpu)
{
	struct counts_of_gpu before[2];

	need_two();
	for (int i = 0; i < 2; i++)
		before[i] = kernels_at_rest(&gpus[i]);
	for (unsigned int launch = 0; launch < 3 * LAUNCHES; launch++) {
		const struct gpu_under_test *gpu = &gpus[launch % 3 == 0];

		gpu_check(cuCtxSetCurrent(gpu->context));
		gpu_launch_empty(gpu);
		gpu_check(cuCtxSynchronize());
	}
	for (int i = 0; i < 2; i++) {
		struct counts_of_gpu kernels = kernels_at_rest(&gpus[i]);

		assert_int_equal(kernels.launched - before[i].launched, i == 0 ? 2 * LAUNCHES : LAUNCHES);
		assert_int_equal(kernels.ended - before[i].ended, i == 0 ? 2 * LAUNCHES : LAUNCHES);
	}
}

#define FROM_POOL (8 * MIB)

/* The memory counts on the pool's GPU, and not on the GPU of the current context. */
TEST(a_pool_of_the_other_gpu)
{
	uint64_t before[2];
	CUdeviceptr address;
	void *pool;

	need_two();
	gpu_check(cuCtxSetCurrent(gpus[0].context));
	gpu_check(cuDeviceGetMemPool(&pool, gpus[1].device));
	for (int i = 0; i < 2; i++)
		before[i] = limited_in_use(&gpus[i]);
	gpu_check(cuMemAllocFromPoolAsync(&address, FROM_POOL, pool, NULL));
	assert_int_equal(limited_in_use(&gpus[0]), before[0]);
	assert_true(limited_in_use(&gpus[1]) >= before[1] + FROM_POOL);
	gpu_check(cuMemFreeAsync(address, NULL));
	gpu_check(cuCtxSynchronize());
}

RUN_TESTS_IN(open_gpus, NULL, NULL, NULL)
