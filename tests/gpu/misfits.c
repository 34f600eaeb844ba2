/*
 * Launches whose blocks must run at once finish in every partition, also those of facts.md, "Launches that never finish". A launch
 * that fits stays inside. One that does not fit gets whole virtual GPCs until it does, and is counted.
 *
 * gpus: h200 turing blackwell
 */
#include "../cases.h"
#include "support/first_gpu.h"
#include "support/room.h"

static struct tpcset run_clusters(unsigned int size)
{
	uint32_t sms[64];

	return gpu_where_clusters(&gpu, size, COUNT_OF(sms), sms);
}

static void assert_stays(unsigned int cluster, struct tpcset set)
{
	uint64_t before = gpu_counted(SEGMENT_WIDENED);

	gpu_set_partition(&gpu, set);
	struct tpcset ran = run_clusters(cluster);

	assert_true(tpcset_is_subset(&ran, &set));
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), before);
}

/* The launch finishes and is counted, and the next kernel runs in the partition. */
static void assert_widened(unsigned int cluster, struct tpcset set)
{
	uint64_t before = gpu_counted(SEGMENT_WIDENED);

	gpu_set_partition(&gpu, set);
	run_clusters(cluster);
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), before + 1);
	gpu_assert_runs_in(&gpu, NULL, set);
}

TEST(clusters_that_do_not_fit)
{
	struct tpcset one, other;

	gpu_need_clusters();
	assert_widened(16, gpu_some_of_gpc(gpu_gpc_with(4), 4));
	one = gpu_some_of_gpc(0, 2);
	other = gpu_some_of_gpc(1, 2);
	assert_widened(8, tpcset_or(&one, &other));
	one = gpu_singletons(&gpu);
	assert_false(tpcset_is_empty(&one));
	assert_widened(4, one);
}

TEST(what_fits_stays)
{
	gpu_need_clusters();
	assert_stays(8, gpu_some_of_gpc(gpu_gpc_with(4), 4));
	assert_stays(16, gpu_some_of_gpc(gpu_gpc_with(8), 8));
	assert_stays(2, gpu_singletons(&gpu));
	assert_stays(1, gpu_range(0, 0));
}

static void run_cooperative(unsigned int blocks)
{
	gpu_check(gpu_launch_cooperative(&gpu, blocks));
	gpu_check(cuCtxSynchronize());
}

TEST(cooperative_grids)
{
	uint64_t before = gpu_counted(SEGMENT_WIDENED), cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};

	gpu_set_partition(&gpu, gpu_range(0, 3));
	/* The next launch must not use the thread's remembered decision of a plain launch. */
	gpu_run(&gpu);
	run_cooperative(8);
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), before);
	run_cooperative(gpu.sm_count);
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), before + 1);
	run_cooperative(2 * gpu.sm_count);
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), before + 2);
	gpu_assert_inside(gpu_range(0, 3));
	/* A plain launch, by a call that cannot ask for blocks that run at once, must not get the room that the last call needed. */
	run_cooperative(gpu.sm_count);
	gpu_set_partition(&gpu, gpu_range(4, 5));
	gpu_check(cuLaunchKernel(gpu.where, GPU_BLOCKS(&gpu), 1, 1, GPU_THREADS, 1, 1, 0, NULL, parameters, NULL));
	gpu_check(cuCtxSynchronize());
	gpu_assert_ran(gpu_read_tpcs(&gpu, gpu.output, GPU_BLOCKS(&gpu)), gpu_range(4, 5));
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), before + 3);
}

/* The call for several devices has the stream in a list. */
TEST(cooperative_grids_on_devices)
{
	uint64_t before = gpu_counted(SEGMENT_WIDENED);
	CUstream stream = gpu_new_stream();

	gpu_set_partition(&gpu, gpu_range(0, 3));
	gpu_run(&gpu);
	gpu_check(gpu_launch_on_devices(&gpu, &stream, 1, 8));
	gpu_check(cuCtxSynchronize());
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), before);
	gpu_check(gpu_launch_on_devices(&gpu, &stream, 1, gpu.sm_count));
	gpu_check(cuCtxSynchronize());
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), before + 1);
	gpu_assert_inside(gpu_range(0, 3));
	assert_int_equal(cuLaunchCooperativeKernelMultiDevice(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
	gpu_check(cuStreamDestroy_v2(stream));
}

static CUresult launch_cooperative_clusters(unsigned int size, unsigned int blocks)
{
	const struct shape shape = {
		.blocks = blocks, .threads = GPU_COOPERATIVE_THREADS, .cluster = size, .is_cooperative = true};

	return shape_launch(&gpu, &shape, NULL, gpu.output);
}

/* Three TPCs have room for one cluster of two TPCs' SMs at a time: the TPC that is left over holds no cluster. */
TEST(whole_clusters)
{
	unsigned int size = 2 * gpu.topology->sms_per_tpc, room = size * gpu_blocks_per_sm(&gpu);
	uint64_t first = gpu_counted(SEGMENT_WIDENED);
	struct tpcset set;

	gpu_need_clusters();
	set = gpu_some_of_gpc(gpu_gpc_with(3), 3);
	gpu_set_partition(&gpu, set);
	gpu_check(launch_cooperative_clusters(size, room));
	struct tpcset ran = gpu_read_tpcs(&gpu, gpu.output, room);

	assert_true(tpcset_is_subset(&ran, &set));
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), first);
	gpu_check(launch_cooperative_clusters(size, room + size));
	gpu_check(cuCtxSynchronize());
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), first + 1);
}

/* Before Hopper, a descriptor does not say either that its launch is cooperative. */
TEST(descriptors_that_are_not_known)
{
	if (!gpu_is_simulated())
		gpu_skip("this driver's descriptors are known");
	gpu_set_partition(&gpu, gpu_range(0, 3));
	struct segment_counters first = gpu_counters();

	setenv("SIM_FAULTS", "bad-qmd", 1);
	run_cooperative(8);
	unsetenv("SIM_FAULTS");
	assert_int_equal(gpu_counted(SEGMENT_UNKNOWN_QMD), first.reasons[SEGMENT_UNKNOWN_QMD] + 1);
	assert_int_equal(gpu_counters().restricted, first.restricted);
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, NULL)
