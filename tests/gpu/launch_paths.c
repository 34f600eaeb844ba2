/* A kernel runs in the partition, whichever of the driver's functions launches it, and however that function was
 * found. */
#include "support/first_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>

static uint64_t cycles = GPU_CYCLES;
static void *arguments[] = {&gpu.output, &cycles};

/* --- the ways to launch ------------------------------------------------------------------------------------- */

typedef CUresult launch_function(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                                 unsigned int, unsigned int, CUstream, void **, void **);

static void launch_with(launch_function *function, CUstream stream)
{
	gpu_check(function(gpu.where, GPU_BLOCKS(&gpu), 1, 1, GPU_THREADS, 1, 1, 0, stream, arguments, NULL));
}

static CUlaunchConfig config(void)
{
	return (CUlaunchConfig){
		.gridDimX = GPU_BLOCKS(&gpu),
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = GPU_THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
	};
}

static void plain(void)
{
	launch_with(cuLaunchKernel, NULL);
}

static void plain_on_legacy_stream(void)
{
	launch_with(cuLaunchKernel, CU_STREAM_LEGACY);
}

static void plain_on_per_thread_stream(void)
{
	launch_with(cuLaunchKernel, CU_STREAM_PER_THREAD);
}

static void per_thread(void)
{
	launch_with(cuLaunchKernel_ptsz, NULL);
}

static void extended(void)
{
	const CUlaunchConfig launch = config();

	gpu_check(cuLaunchKernelEx(&launch, gpu.where, arguments, NULL));
}

static void extended_per_thread(void)
{
	const CUlaunchConfig launch = config();

	gpu_check(cuLaunchKernelEx_ptsz(&launch, gpu.where, arguments, NULL));
}

static void found_by_address(uint64_t flags)
{
	void *function = NULL;

	gpu_check(cuGetProcAddress_v2("cuLaunchKernel", &function, 12000, flags, NULL));
	launch_with((launch_function *)function, NULL);
}

static void by_address(void)
{
	found_by_address(0);
}

static void by_address_per_thread(void)
{
	found_by_address(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
}

static void run_graph(CUgraph graph)
{
	CUgraphExec exec;

	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

static void graph(void)
{
	const CUDA_KERNEL_NODE_PARAMS parameters = gpu_where_node(&gpu, arguments);
	CUgraphNode node;
	CUgraph made;

	gpu_check(cuGraphCreate(&made, 0));
	gpu_check(cuGraphAddKernelNode_v2(&node, made, NULL, 0, &parameters));
	run_graph(made);
}

static void captured_graph(void)
{
	CUstream stream;
	CUgraph made;

	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	launch_with(cuLaunchKernel, stream);
	gpu_check(cuStreamEndCapture(stream, &made));
	run_graph(made);
	gpu_check(cuStreamDestroy_v2(stream));
}

/* --- the test ------------------------------------------------------------------------------------------------- */

static void check(void (*launch)(void), const struct tpcset *set)
{
	gpu_set_partition(&gpu, set);
	gpu_check(cuMemsetD8_v2(gpu.output, 0xff, GPU_BLOCKS(&gpu) * sizeof(uint32_t)));
	gpu_check(cuCtxSynchronize());
	launch();
	gpu_check(cuCtxSynchronize());
	struct tpcset ran = gpu_read_tpcs(&gpu, gpu.output, GPU_BLOCKS(&gpu));

	gpu_assert_equal(&ran, set);
}

static void test_obeys(void **state)
{
	void (*const *launch)(void) = *state;
	struct tpcset few = gpu_range(3, 5), others = gpu_range(8, 9), all = gpu_all(&gpu);

	check(*launch, &few);
	check(*launch, &others);
	check(*launch, &all);
}

/* The launch has as many blocks as the partition holds at once. */
static void test_cooperative_obeys(void **state)
{
	struct tpcset set = gpu_range(4, 7);
	unsigned int blocks = tpcset_count(&set) * gpu.topology->sms_per_tpc;

	(void)state;
	gpu_set_partition(&gpu, &set);
	gpu_check(cuLaunchCooperativeKernel(gpu.where, blocks, 1, 1, GPU_THREADS, 1, 1, 0, NULL, arguments));
	gpu_check(cuCtxSynchronize());
	struct tpcset ran = gpu_read_tpcs(&gpu, gpu.output, blocks);

	assert_true(tpcset_is_subset(&ran, &set));
}

/* --- threads ------------------------------------------------------------------------------------------------ */

#define THREADS (3 * COUNTER_SLOTS)

static void *launch_once(void *unused)
{
	(void)unused;
	cuCtxSetCurrent(gpu.context);
	gpu_launch_empty(&gpu);
	return NULL;
}

/* A thread that ends gives up its counters: after any number of threads, the next one has counters of its own. */
static void test_threads_one_after_another(void **state)
{
	struct segment own = gpu_own_segment();
	uint64_t in_common = own.slots[0].launches[0] + own.slots[0].launches[1];
	struct segment_counters before = gpu_counters(), after;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, launch_once, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	gpu_check(cuCtxSynchronize());
	after = gpu_counters();
	assert_int_equal(after.restricted + after.unrestricted - before.restricted - before.unrestricted, THREADS);
	assert_int_equal(own.slots[0].launches[0] + own.slots[0].launches[1] - in_common, 0);
	segment_close(&own);
}

#define PATH(launch) {#launch, test_obeys, NULL, NULL, &(void (*)(void)){launch}}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PATH(plain),
		PATH(plain_on_legacy_stream),
		PATH(plain_on_per_thread_stream),
		PATH(per_thread),
		PATH(extended),
		PATH(extended_per_thread),
		PATH(by_address),
		PATH(by_address_per_thread),
		PATH(graph),
		PATH(captured_graph),
		cmocka_unit_test(test_cooperative_obeys),
		cmocka_unit_test(test_threads_one_after_another),
	};

	return cmocka_run_group_tests_name("launch_paths", tests, gpu_set_up, NULL);
}
