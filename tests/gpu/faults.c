/*
 * A kernel's fault ends a context, and the books of memory and of kernels stay right. Not on hardware beside clients of
 * MPS: a fault ends them all.
 *
 * gpus: h200-x2
 */
#include "../cases.h"
#include "state/kernels/counts_read.h"
#include "support/limited.h"

#define HELD (40 * MIB)

static struct gpu_under_test gpus[2];
static int count;
static size_t limit;

static CUdeviceptr hold(void)
{
	CUdeviceptr address;

	gpu_check(cuMemAlloc_v2(&address, HELD));
	return address;
}

/* In the current context. The kernel writes where no memory is. */
static void launch_faulty(const struct gpu_under_test *gpu, CUstream stream)
{
	CUdeviceptr nowhere = 16;
	uint64_t cycles = 100;
	void *arguments[] = {&nowhere, &cycles};

	gpu_check(cuLaunchKernel(gpu->where, 4, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

FIXTURE(begin)
{
	count = gpu_initialise();
	for (int i = 0; i < 2 && i < count; i++)
		gpu_open(&gpus[i], i);
	gpu_check(cuCtxSetCurrent(gpus[0].context));
	limited_to(UINT64_C(1) << 30);
	limit = limited_free();
}

FIXTURE(end)
{
	limited_to(SEGMENT_MEMORY_OFF);
}

/* From here on, synchronisations are heard. */
static void use_pool(void)
{
	CUdeviceptr pooled;

	gpu_check(cuMemAllocAsync(&pooled, 2 * MIB, NULL));
	gpu_check(cuMemFreeAsync(pooled, NULL));
	gpu_check(cuCtxSynchronize());
}

/* After a fault, the driver may refuse all calls but the last. */
static void end_failed(struct gpu_under_test *gpu)
{
	cuCtxSetCurrent(gpu->context);
	cuMemFree_v2(gpu->output);
	cuModuleUnload(gpu->module);
	cuCtxDestroy_v2(gpu->context);
}

/* The driver frees nothing until the context is destroyed. */
TEST(a_failed_context_has_its_memory)
{
	CUcontext other;

	use_pool();
	CUdeviceptr held = hold();

	gpu_check(cuCtxCreate_v2(&other, 0, gpus[0].device));
	gpu_check(cuCtxSetCurrent(gpus[0].context));
	launch_faulty(&gpus[0], NULL);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	gpu_check(cuCtxSetCurrent(other));
	assert_true(limited_free() <= limit - HELD);
	end_failed(&gpus[0]);
	gpu_check(cuCtxSetCurrent(other));
	assert_true(limited_free() > limit - HELD);
	if (gpu_is_simulated())
		gpu_check(cuMemFree_v2(held)); /* there, memory outlives the context */
	gpu_check(cuCtxDestroy_v2(other));
	if (count > 1) {
		gpu_check(cuCtxSetCurrent(gpus[1].context));
		gpu_close(&gpus[1]);
	}
}

static CUgraphExec instantiate(const struct gpu_under_test *gpu)
{
	const CUDA_KERNEL_NODE_PARAMS parameters = {
		.func = gpu->nothing, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .ctx = gpu->context,
	};
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

/* Whichever context is current when the program hears of the fault, by a wait or by a launch. */
TEST(a_healthy_context_stays_in_the_books)
{
	CUgraphExec exec;
	CUstream stream;

	if (count < 2)
		gpu_skip("there is one GPU only");
	gpu_check(cuCtxSetCurrent(gpus[1].context));
	use_pool();
	CUdeviceptr held = hold();
	size_t before = limited_free();

	gpu_check(cuCtxSetCurrent(gpus[0].context));
	stream = gpu_new_stream();
	exec = instantiate(&gpus[0]);
	launch_faulty(&gpus[0], stream);
	gpu_check(cuCtxSetCurrent(gpus[1].context));
	assert_int_equal(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_not_equal(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
	assert_true(limited_free() <= before + MIB);
	gpu_launch_empty(&gpus[1]);
	gpu_check(cuCtxSynchronize());
	struct counts_of_gpu kernels = gpu_kernels_at_rest(&gpus[1]);

	assert_true(kernels.gaps == 0 || kernels.gaps == 1 << COUNTS_NO_SLOTS);
	gpu_check(cuMemFree_v2(held));
	gpu_close(&gpus[1]);
	end_failed(&gpus[0]);
}

RUN_TESTS(begin, end)
