/*
 * A kernel's fault ends all contexts of the process, on all GPUs (facts.md, "Releases"), and the books of memory and of
 * kernels stay right. Not on hardware beside clients of MPS: a fault ends all clients.
 *
 * gpus: h200-x2 h200
 */
#include "../cases.h"
#include "state/kernels/counts_read.h"
#include "support/limited.h"
#include "support/timed.h"

#define HELD (40 * MIB)
#define LONG UINT64_C(20000000000) /* 10 s */

/* Two contexts of the first GPU, and a context of the second if there is one. The first context has the fault. */
static struct gpu_under_test gpus[3];
static int count;
static uint64_t used[COUNT_OF(gpus)]; /* before the fault, on the GPU of each */
static CUstream stream; /* of the first context */
static CUgraphExec exec;

static CUgraphExec instantiate(void)
{
	const CUDA_KERNEL_NODE_PARAMS parameters = {
		.func = gpus[0].nothing, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
		.blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .ctx = gpus[0].context,
	};
	CUgraphExec instance;
	CUgraphNode node;
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
	gpu_check(cuGraphInstantiateWithFlags(&instance, graph, 0));
	return instance;
}

/* From here on, synchronisations are heard. */
static void use_pool(void)
{
	CUdeviceptr pooled;

	gpu_check(cuMemAllocAsync(&pooled, 2 * MIB, NULL));
	gpu_check(cuMemFreeAsync(pooled, NULL));
	gpu_check(cuCtxSynchronize());
}

static void open_contexts(void)
{
	CUdeviceptr held;

	count = gpu_initialise() > 1 ? 3 : 2;
	limited_to(UINT64_C(8) << 30);
	for (int i = 0; i < count; i++) {
		gpu_open(&gpus[i], i / 2);
		gpu_check(cuMemAlloc_v2(&held, HELD));
		use_pool();
	}
	gpu_check(cuCtxSetCurrent(gpus[0].context));
	stream = gpu_new_stream();
	exec = instantiate();
	gpu_check(cuGraphLaunch(exec, stream));
	gpu_check(cuStreamSynchronize(stream));
}

static void launch(int number, CUdeviceptr output, uint64_t cycles, CUstream into)
{
	void *arguments[] = {&output, &cycles};

	gpu_check(cuCtxSetCurrent(gpus[number].context));
	gpu_check(cuLaunchKernel(gpus[number].where, 1, 1, 1, 32, 1, 1, 0, into, arguments, NULL));
}

static bool is_busy(int number)
{
	struct counts_of_gpu kernels = gpu_kernels(&gpus[number]);

	return kernels.in_flight > 0 || kernels.gaps & 1 << COUNTS_NO_SLOTS;
}

/* Viewers see no kernel in flight any more, and the memory of each context. */
static void assert_all_ended(void)
{
	for (int i = 0; i < count; i++) {
		ROW("context %d", i);
		assert_int_equal(gpu_kernels(&gpus[i]).in_flight, 0);
		assert_true(limited_in_use(&gpus[i]) + HELD > used[i]);
	}
}

/* Facts that the books rely on. */
static void assert_every_call_fails(void)
{
	size_t free_bytes, total_bytes;
	CUdeviceptr address;
	CUcontext context;

	for (int i = 0; i < count; i++) {
		ROW("context %d", i);
		gpu_check(cuCtxSetCurrent(gpus[i].context));
		assert_int_equal(cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_ERROR_ILLEGAL_ADDRESS);
		assert_int_equal(cuMemAlloc_v2(&address, MIB), CUDA_ERROR_ILLEGAL_ADDRESS);
		assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
		assert_int_equal(cuCtxCreate_v2(&context, 0, gpus[i].device), CUDA_ERROR_ILLEGAL_ADDRESS);
	}
}

/* The memory of each counts until then, and no longer. */
static void destroy_contexts(void)
{
	for (int i = count - 1; i >= 0; i--) {
		ROW("context %d", i);
		uint64_t before = limited_in_use(&gpus[i]);

		gpu_check(cuCtxSetCurrent(gpus[i].context));
		gpu_check(cuCtxDestroy_v2(gpus[i].context));
		assert_true(limited_in_use(&gpus[i]) + HELD <= before);
	}
	assert_true(limited_in_use(&gpus[0]) < HELD);
}

/* Every context but the first has work in flight. */
static void fail_and_hear(CUresult (*hear)(void))
{
	open_contexts();
	for (int i = 1; i < count; i++) {
		launch(i, gpus[i].output, LONG, NULL);
		assert_true(is_busy(i));
	}
	for (int i = 0; i < count; i++)
		used[i] = limited_in_use(&gpus[i]);
	launch(0, 16, 100, stream); /* where no memory is */
	assert_int_equal(hear(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_all_ended();
	assert_every_call_fails();
	assert_all_ended();
	destroy_contexts();
}

static CUresult wait_in_own(void)
{
	return cuCtxSynchronize();
}

TEST_IN_CHILD(its_context_tells)
{
	fail_and_hear(wait_in_own);
}

static CUresult wait_in_other(void)
{
	gpu_check(cuCtxSetCurrent(gpus[count - 1].context));
	return cuStreamSynchronize(stream);
}

TEST_IN_CHILD(its_stream_tells_in_another_context)
{
	fail_and_hear(wait_in_other);
}

static CUresult launch_until_refused(void)
{
	CUresult result;

	timed_wait_until((result = cuGraphLaunch(exec, stream)) != CUDA_SUCCESS);
	return result;
}

TEST_IN_CHILD(a_launch_tells)
{
	fail_and_hear(launch_until_refused);
}

RUN_TESTS(NULL, NULL)
