/*
 * --on-misfit fail: a launch whose blocks must run at once, and that the partition cannot hold, fails with the error
 * for a GPU that is too small. Launches that fit run, and launches that are only captured are not refused.
 */
#include "support/green.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>


static uint64_t launches(void)
{
	struct segment_counters now = gpu_counters();

	return now.restricted + now.unrestricted;
}

/* As many blocks as fit on so many TPCs at once. */
static unsigned int room_on(unsigned int tpcs)
{
	int blocks = 0;

	gpu_check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.where, GPU_THREADS, 0));
	return (unsigned int)blocks * tpcs * gpu.topology->sms_per_tpc;
}

static CUresult launch(CUlaunchAttribute *attribute, unsigned int blocks, CUstream stream)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};
	const CUlaunchConfig config = {.gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = GPU_THREADS,
	                               .blockDimY = 1, .blockDimZ = 1, .hStream = stream, .attrs = attribute,
	                               .numAttrs = 1};

	return cuLaunchKernelEx(&config, gpu.where, parameters, NULL);
}

static CUresult launch_cooperative(unsigned int blocks, CUstream stream)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};

	return launch(&attribute, blocks, stream);
}

/* Launches with the older of the two functions. */
static CUresult launch_cooperative_by_list(unsigned int blocks)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};

	return cuLaunchCooperativeKernel(gpu.where, blocks, 1, 1, GPU_THREADS, 1, 1, 0, NULL, parameters);
}

/* Launches clusters of four blocks, in two dimensions. */
static CUresult launch_square_clusters(void)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 2, 1}};
	const CUlaunchConfig config = {.gridDimX = 4, .gridDimY = 4, .gridDimZ = 1, .blockDimX = GPU_THREADS,
	                               .blockDimY = 1, .blockDimZ = 1, .attrs = &attribute, .numAttrs = 1};

	return cuLaunchKernelEx(&config, gpu.where, parameters, NULL);
}

static CUresult launch_clusters(unsigned int cluster, unsigned int blocks)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {cluster, 1, 1}};

	return launch(&attribute, blocks, NULL);
}

/* The launch fails, nothing runs, and the context still works. */
static void assert_refused(CUresult result, CUresult expected, uint64_t launched, uint64_t refused)
{
	assert_int_equal(result, expected);
	assert_int_equal(launches(), launched);
	assert_int_equal(gpu_counters().reasons[SEGMENT_REFUSED], refused + 1);
	gpu_check(cuCtxSynchronize());
}

static void test_cooperative(void **state)
{
	struct tpcset set = gpu_range(0, 3);
	uint64_t launched, refused;

	(void)state;
	gpu_set_partition(&gpu, &set);
	launched = launches();
	refused = gpu_counters().reasons[SEGMENT_REFUSED];
	assert_refused(launch_cooperative_by_list(room_on(4) + 1), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, launched,
	               refused);
	assert_refused(launch_cooperative(room_on(4) + 1, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, launched,
	               refused + 1);
	gpu_check(launch_cooperative_by_list(room_on(4)));
	gpu_check(launch_cooperative(room_on(4), NULL));
	struct tpcset ran = gpu_read_tpcs(&gpu, gpu.output, room_on(4));

	gpu_assert_equal(&ran, &set);
	assert_int_equal(launches(), launched + 2);
	assert_int_equal(gpu_counters().reasons[SEGMENT_WIDENED], 0);
}

/* The partition decides, even if the green context leaves less of it: a launch that the partition can hold runs in it
 * (green_misfits.c). */
static void launch_in_green(const struct tpcset *set, unsigned int blocks, CUresult expected)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&green.inside.output, &cycles};

	gpu_set_partition(&gpu, set);
	assert_int_equal(cuLaunchCooperativeKernel(green.inside.where, blocks, 1, 1, GPU_THREADS, 1, 1, 0, NULL, parameters),
	                 expected);
	gpu_check(cuCtxSynchronize());
}

static void test_in_a_green_context(void **state)
{
	struct tpcset all = gpu_all(&gpu), outside, set = {{0}};
	uint64_t refused = gpu_counters().reasons[SEGMENT_REFUSED];

	(void)state;
	green_enter();
	outside = tpcset_without(&all, &green.tpcs);
	tpcset_add(&set, tpcset_next(&outside, 0));
	launch_in_green(&set, room_on(1), CUDA_SUCCESS);
	struct tpcset ran = gpu_read_tpcs(&green.inside, green.inside.output, room_on(1));

	gpu_assert_equal(&ran, &set);
	launch_in_green(&set, room_on(1) + 1, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(gpu_counters().reasons[SEGMENT_REFUSED], refused + 1);
	tpcset_add(&set, tpcset_next(&green.tpcs, 0));
	launch_in_green(&set, room_on(1) + 1, CUDA_SUCCESS);
	ran = gpu_read_tpcs(&green.inside, green.inside.output, room_on(1) + 1);
	assert_true(tpcset_is_subset(&ran, &set));
	assert_int_equal(gpu_counters().reasons[SEGMENT_REFUSED], refused + 1);
	assert_int_equal(gpu_counters().reasons[SEGMENT_WIDENED], 0);
}

/* Each launch is decided with the partition of that moment. */
static void test_a_partition_that_grows(void **state)
{
	struct tpcset small = gpu_range(0, 0), large = gpu_range(0, 2);

	(void)state;
	gpu_set_partition(&gpu, &small);
	assert_int_equal(launch_cooperative(room_on(2), NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	gpu_set_partition(&gpu, &large);
	gpu_check(launch_cooperative(room_on(2), NULL));
	gpu_check(cuCtxSynchronize());
}

static void test_clusters(void **state)
{
	struct tpcset one = topology_virtual_gpc(gpu.topology, 0), set = {{0}};
	uint64_t launched, refused;

	(void)state;
	gpu_need_clusters();
	tpcset_add(&set, tpcset_next(&one, 0));
	gpu_set_partition(&gpu, &set);
	launched = launches();
	refused = gpu_counters().reasons[SEGMENT_REFUSED];
	assert_refused(launch_clusters(4, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE, launched, refused);
	assert_refused(launch_square_clusters(), CUDA_ERROR_INVALID_CLUSTER_SIZE, launched, refused + 1);
	gpu_check(launch_clusters(2, 16));
	gpu_set_partition(&gpu, &one);
	gpu_check(launch_clusters(4, 16));
	struct tpcset ran = gpu_read_tpcs(&gpu, gpu.output, 16);

	assert_true(tpcset_is_subset(&ran, &one));
	assert_int_equal(gpu_counters().reasons[SEGMENT_WIDENED], 0);
}

static void test_plain_launches_are_not_looked_at(void **state)
{
	struct tpcset set = gpu_range(1, 1), ran;
	uint64_t refused = gpu_counters().reasons[SEGMENT_REFUSED];
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 0};

	(void)state;
	gpu_set_partition(&gpu, &set);
	gpu_check(launch(&attribute, GPU_BLOCKS(&gpu), NULL));
	ran = gpu_read_tpcs(&gpu, gpu.output, GPU_BLOCKS(&gpu));
	gpu_assert_equal(&ran, &set);
	assert_int_equal(gpu_counters().reasons[SEGMENT_REFUSED], refused);
}

/* The driver itself refuses launches that the whole GPU cannot hold; we do not count these. */
static void test_the_drivers_own_refusals(void **state)
{
	struct tpcset set = gpu_range(0, 0);
	uint64_t refused = gpu_counters().reasons[SEGMENT_REFUSED];

	(void)state;
	gpu_set_partition(&gpu, &set);
	assert_int_equal(launch_cooperative(64 * gpu.sm_count, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(launch_cooperative(0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernelEx(NULL, gpu.where, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpu_counters().reasons[SEGMENT_REFUSED], refused);
}

/* The driver decides about a cluster without blocks. */
static void test_cluster_without_blocks(void **state)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};
	CUlaunchAttribute attributes[] = {
		{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
		{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {0, 0, 0}},
	};
	const CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = GPU_THREADS, .blockDimY = 1,
	                               .blockDimZ = 1, .attrs = attributes, .numAttrs = 2};

	(void)state;
	cuLaunchKernelEx(&config, gpu.where, parameters, NULL);
	gpu_check(cuCtxSynchronize());
}

/* It becomes a node of a graph, and is widened when that runs. */
static void test_captured_launches_are_widened(void **state)
{
	struct tpcset set = gpu_range(0, 0);
	uint64_t widened = gpu_counters().reasons[SEGMENT_WIDENED];
	CUstream stream;
	CUgraphExec exec;
	CUgraph graph;

	(void)state;
	if (gpu.topology->compute_major < 9)
		gpu_skip("before Hopper a node does not say that it is cooperative");
	gpu_set_partition(&gpu, &set);
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpu_check(launch_cooperative(room_on(2), stream));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphLaunch(exec, stream));
	gpu_check(cuStreamSynchronize(stream));
	assert_int_equal(gpu_counters().reasons[SEGMENT_WIDENED], widened + 1);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
	gpu_check(cuStreamDestroy_v2(stream));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cooperative),
		IN_GREEN(test_in_a_green_context),
		cmocka_unit_test(test_cluster_without_blocks),
		cmocka_unit_test(test_a_partition_that_grows),
		cmocka_unit_test(test_clusters),
		cmocka_unit_test(test_plain_launches_are_not_looked_at),
		cmocka_unit_test(test_the_drivers_own_refusals),
		cmocka_unit_test(test_captured_launches_are_widened),
	};

	return cmocka_run_group_tests_name("refused", tests, gpu_set_up, NULL);
}
