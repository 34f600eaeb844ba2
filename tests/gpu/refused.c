/*
 * --on-misfit fail: a launch whose blocks must run at once, and that the partition cannot hold, fails with the error
 * for a GPU that is too small. Launches that fit run, and launches that are only captured are not refused.
 *
 * gpus: h200 turing h200-x2
 * runs: --on-misfit fail
 */
#include "../cases.h"
#include "support/green.h"
#include "support/room.h"

/* As many blocks as fit on so many TPCs at once. */
static unsigned int room_on(unsigned int tpcs)
{
	int blocks = 0;

	gpu_check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.where, GPU_THREADS, 0));
	return (unsigned int)blocks * tpcs * gpu.topology->sms_per_tpc;
}

static CUresult launch_cooperative(unsigned int blocks, CUstream stream)
{
	const struct shape shape = {.blocks = blocks, .threads = GPU_THREADS, .is_cooperative = true};

	return shape_launch(&gpu, &shape, stream, gpu.output);
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
	CUlaunchConfig config = gpu_config(4, GPU_THREADS, NULL);

	config.gridDimY = 4;
	config.attrs = &attribute;
	config.numAttrs = 1;
	return cuLaunchKernelEx(&config, gpu.where, parameters, NULL);
}

static CUresult launch_clusters(unsigned int cluster, unsigned int blocks)
{
	const struct shape shape = {.blocks = blocks, .threads = GPU_THREADS, .cluster = cluster};

	return shape_launch(&gpu, &shape, NULL, gpu.output);
}

/* The launch fails, nothing runs, and the context still works. */
static void assert_refused(CUresult result, CUresult expected, uint64_t launched, uint64_t refused)
{
	assert_int_equal(result, expected);
	assert_int_equal(gpu_launches(), launched);
	assert_int_equal(gpu_counted(SEGMENT_REFUSED), refused + 1);
	gpu_check(cuCtxSynchronize());
}

TEST(cooperative)
{
	gpu_set_partition(&gpu, gpu_range(0, 3));
	uint64_t launched = gpu_launches(), refused = gpu_counted(SEGMENT_REFUSED);

	assert_refused(launch_cooperative_by_list(room_on(4) + 1), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, launched, refused);
	assert_refused(launch_cooperative(room_on(4) + 1, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, launched, refused + 1);
	gpu_check(launch_cooperative_by_list(room_on(4)));
	gpu_check(launch_cooperative(room_on(4), NULL));
	gpu_assert_ran(gpu_read_tpcs(&gpu, gpu.output, room_on(4)), gpu_range(0, 3));
	assert_int_equal(gpu_launches(), launched + 2);
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), 0);
}

TEST(on_a_device)
{
	uint64_t launched = gpu_launches(), refused = gpu_counted(SEGMENT_REFUSED);
	CUstream stream = gpu_new_stream();

	gpu_set_partition(&gpu, gpu_range(0, 3));
	assert_refused(gpu_launch_on_devices(&gpu, &stream, 1, gpu.sm_count), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
	               launched, refused);
	gpu_check(gpu_launch_on_devices(&gpu, &stream, 1, 8));
	gpu_check(cuCtxSynchronize());
	assert_int_equal(gpu_launches(), launched + 1);
	gpu_check(cuStreamDestroy_v2(stream));
}

/* The partition of each stream's GPU decides, not the partition of the current context's GPU. */
TEST(on_two_devices)
{
	uint64_t refused = gpu_counted(SEGMENT_REFUSED);
	struct gpu_under_test both[2] = {gpu};
	CUstream streams[2];

	if (gpu_initialise() < 2)
		gpu_skip("there is one GPU only");
	gpu_set_partition(&gpu, gpu_range(0, 3));
	streams[0] = gpu_new_stream();
	gpu_open(&both[1], 1);
	streams[1] = gpu_new_stream();
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(gpu_launch_on_devices(&both[1], &streams[1], 1, gpu.sm_count));
	assert_int_equal(gpu_counted(SEGMENT_REFUSED), refused);
	gpu_check(gpu_launch_on_devices(both, streams, 2, 8));
	assert_refused(gpu_launch_on_devices(both, streams, 2, gpu.sm_count), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
	               gpu_launches(), refused);
	gpu_check(cuCtxSetCurrent(both[1].context));
	gpu_close(&both[1]);
	gpu_check(cuCtxSetCurrent(gpu.context));
}

/* The partition decides, even if the green context leaves less of it: a launch that the partition can hold runs in it
 * (green_misfits.c). */
static void launch_in_green(struct tpcset set, unsigned int blocks, CUresult expected)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&green.inside.output, &cycles};

	gpu_set_partition(&gpu, set);
	assert_int_equal(cuLaunchCooperativeKernel(green.inside.where, blocks, 1, 1, GPU_THREADS, 1, 1, 0, NULL, parameters),
	                 expected);
	gpu_check(cuCtxSynchronize());
}

TEST_WITH(NULL, green_leave, in_a_green_context)
{
	struct tpcset all = gpu_all(&gpu), outside, set = {{0}};
	uint64_t refused = gpu_counted(SEGMENT_REFUSED);

	green_enter();
	outside = tpcset_without(&all, &green.tpcs);
	tpcset_add(&set, tpcset_next(&outside, 0));
	launch_in_green(set, room_on(1), CUDA_SUCCESS);
	gpu_assert_ran(gpu_read_tpcs(&green.inside, green.inside.output, room_on(1)), set);
	launch_in_green(set, room_on(1) + 1, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(gpu_counted(SEGMENT_REFUSED), refused + 1);
	tpcset_add(&set, tpcset_next(&green.tpcs, 0));
	launch_in_green(set, room_on(1) + 1, CUDA_SUCCESS);
	struct tpcset ran = gpu_read_tpcs(&green.inside, green.inside.output, room_on(1) + 1);

	assert_true(tpcset_is_subset(&ran, &set));
	assert_int_equal(gpu_counted(SEGMENT_REFUSED), refused + 1);
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), 0);
}

TEST(clusters)
{
	struct tpcset one = topology_virtual_gpc(gpu.topology, 0);

	gpu_need_clusters();
	gpu_set_partition(&gpu, gpu_first_of(one, 1));
	uint64_t launched = gpu_launches(), refused = gpu_counted(SEGMENT_REFUSED);

	assert_refused(launch_clusters(4, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE, launched, refused);
	assert_refused(launch_square_clusters(), CUDA_ERROR_INVALID_CLUSTER_SIZE, launched, refused + 1);
	gpu_check(launch_clusters(2, 16));
	gpu_set_partition(&gpu, one);
	gpu_check(launch_clusters(4, 16));
	struct tpcset ran = gpu_read_tpcs(&gpu, gpu.output, 16);

	assert_true(tpcset_is_subset(&ran, &one));
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), 0);
}

/* The driver itself refuses launches that the whole GPU cannot hold; we do not count these. */
TEST(the_drivers_own_refusals)
{
	uint64_t refused = gpu_counted(SEGMENT_REFUSED);

	gpu_set_partition(&gpu, gpu_range(0, 0));
	assert_int_equal(launch_cooperative(64 * gpu.sm_count, NULL), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(launch_cooperative(0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernelEx(NULL, gpu.where, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpu_counted(SEGMENT_REFUSED), refused);
}

/* It becomes a node of a graph, and is widened when that runs. */
TEST(captured_launches_are_widened)
{
	uint64_t widened = gpu_counted(SEGMENT_WIDENED);
	CUgraphExec exec;
	CUgraph graph;

	if (gpu.topology->compute_major < 9)
		gpu_skip("before Hopper a node does not say that it is cooperative");
	CUstream stream = gpu_new_stream();

	gpu_set_partition(&gpu, gpu_range(0, 0));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpu_check(launch_cooperative(room_on(2), stream));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphLaunch(exec, stream));
	gpu_check(cuStreamSynchronize(stream));
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), widened + 1);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
	gpu_check(cuStreamDestroy_v2(stream));
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, NULL)
