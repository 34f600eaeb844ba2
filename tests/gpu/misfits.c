/*
 * Launches whose blocks must run at once finish in every partition, also those of docs/facts.md, "Launches that never
 * finish". A launch that fits stays inside. One that does not fit gets whole virtual GPCs until it does, and is
 * counted.
 */
#include "support/first_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>


static uint64_t widened(void)
{
	return gpu_counters().reasons[SEGMENT_WIDENED];
}

/* --- partitions -------------------------------------------------------------------------------------------- */

static struct tpcset part_of_virtual_gpc(unsigned int virtual_gpc, unsigned int count)
{
	struct tpcset all = topology_virtual_gpc(gpu.topology, virtual_gpc), part = {{0}};

	for (unsigned int tpc = tpcset_next(&all, 0); tpc < TPCSET_MAX && count > 0; tpc = tpcset_next(&all, tpc + 1)) {
		tpcset_add(&part, tpc);
		count--;
	}
	assert_int_equal(count, 0);
	return part;
}

static unsigned int virtual_gpc_of(unsigned int least)
{
	struct tpcset members = topology_virtual_gpc(gpu.topology, 0);
	unsigned int found = 0;

	while (found < gpu.topology->gpc_limit && tpcset_count(&members) < least)
		members = topology_virtual_gpc(gpu.topology, ++found);
	return found;
}

static struct tpcset singletons(void)
{
	struct tpcset set = {{0}};

	for (unsigned int tpc = 0; tpc < gpu.topology->tpc_count; tpc++) {
		if (gpu.topology->tpcs[tpc].virtual_gpc >= gpu.topology->gpc_limit)
			tpcset_add(&set, tpc);
	}
	assert_false(tpcset_is_empty(&set));
	return set;
}

/* --- launches ---------------------------------------------------------------------------------------------- */

static struct tpcset run_clusters(unsigned int size)
{
	uint32_t sms[64];
	struct tpcset ran = {{0}};

	gpu_where_clusters(&gpu, size, 64, sms);
	for (unsigned int block = 0; block < 64; block++)
		tpcset_add(&ran, sms[block] / gpu.topology->sms_per_tpc);
	return ran;
}

static void assert_stays(unsigned int cluster, struct tpcset set)
{
	uint64_t before = widened();

	gpu_set_partition(&gpu, &set);
	struct tpcset ran = run_clusters(cluster);

	assert_true(tpcset_is_subset(&ran, &set));
	assert_int_equal(widened(), before);
}

/* The launch finishes and is counted, and the next kernel runs in the partition. */
static void assert_widened(unsigned int cluster, struct tpcset set)
{
	uint64_t before = widened();

	gpu_set_partition(&gpu, &set);
	run_clusters(cluster);
	assert_int_equal(widened(), before + 1);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &set);
}

static void test_cluster_of_16_on_8_sms(void **state)
{
	(void)state;
	gpu_need_clusters();
	assert_widened(16, part_of_virtual_gpc(virtual_gpc_of(4), 4));
}

static void test_cluster_of_8_across_two_gpcs(void **state)
{
	struct tpcset one, other;

	(void)state;
	gpu_need_clusters();
	one = part_of_virtual_gpc(0, 2);
	other = part_of_virtual_gpc(1, 2);
	assert_widened(8, tpcset_or(&one, &other));
}

static void test_cluster_of_4_on_singletons(void **state)
{
	(void)state;
	gpu_need_clusters();
	assert_widened(4, singletons());
}

/* As the products of libraries on 1, 2 and 3 TPCs (docs/facts.md, "What others report"). */
static void test_clusters_of_2_and_4_on_few_tpcs(void **state)
{
	(void)state;
	gpu_need_clusters();
	for (unsigned int tpcs = 1; tpcs <= 3; tpcs++) {
		struct tpcset few = gpu_range(0, tpcs - 1); /* each in another virtual GPC */

		assert_stays(2, few);
		assert_widened(4, few);
	}
}

static void test_what_fits_stays(void **state)
{
	(void)state;
	gpu_need_clusters();
	assert_stays(8, part_of_virtual_gpc(virtual_gpc_of(4), 4));
	assert_stays(16, part_of_virtual_gpc(virtual_gpc_of(8), 8));
	assert_stays(2, singletons());
	assert_stays(1, gpu_range(0, 0));
}

/* A GPC of the chip holds a cluster if one virtual GPC has enough of its TPCs; otherwise the launch is widened. */
static bool gpc_holds(const struct tpcset *gpc, unsigned int cluster)
{
	bool holds = false;

	for (unsigned int group = 0; group < gpu.topology->gpc_limit; group++) {
		struct tpcset members = topology_virtual_gpc(gpu.topology, group), both = tpcset_and(&members, gpc);

		holds = holds || tpcset_count(&both) * gpu.topology->sms_per_tpc >= cluster;
	}
	return holds;
}

static void test_clusters_of_8_in_every_gpc(void **state)
{
	unsigned int tried = 0;

	(void)state;
	gpu_need_clusters();
	for (unsigned int gpc = 0; gpc < TOPOLOGY_GPCS_MAX; gpc++) {
		struct tpcset members = topology_gpc(gpu.topology, gpc);

		if (!tpcset_is_empty(&members) && gpc_holds(&members, 8))
			assert_stays(8, members);
		else if (!tpcset_is_empty(&members))
			assert_widened(8, members);
		tried += !tpcset_is_empty(&members);
	}
	assert_true(tried > 0 || gpu.topology->tpcs[0].gpc == TOPOLOGY_UNKNOWN);
}

static void run_cooperative(unsigned int blocks)
{
	gpu_check(gpu_launch_cooperative(&gpu, blocks));
	gpu_check(cuCtxSynchronize());
}

/* Launches with a call that cannot ask for blocks that run at once. */
static struct tpcset where_without_asking(void)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};

	gpu_check(cuLaunchKernel(gpu.where, GPU_BLOCKS(&gpu), 1, 1, GPU_THREADS, 1, 1, 0, NULL, parameters, NULL));
	gpu_check(cuCtxSynchronize());
	return gpu_read_tpcs(&gpu, gpu.output, GPU_BLOCKS(&gpu));
}

static void test_cooperative_grids(void **state)
{
	struct tpcset set = gpu_range(0, 3), other = gpu_range(4, 5);
	uint64_t before = widened();

	(void)state;
	gpu_set_partition(&gpu, &set);
	/* The next launch must not use the thread's remembered decision of a plain launch. */
	gpu_run(&gpu);
	run_cooperative(8);
	assert_int_equal(widened(), before);
	run_cooperative(gpu.sm_count);
	assert_int_equal(widened(), before + 1);
	run_cooperative(2 * gpu.sm_count);
	assert_int_equal(widened(), before + 2);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &set);
	/* A plain launch must not get the room that the last call needed. */
	run_cooperative(gpu.sm_count);
	gpu_set_partition(&gpu, &other);
	ran = where_without_asking();
	gpu_assert_equal(&ran, &other);
	assert_int_equal(widened(), before + 3);
}

static unsigned int blocks_per_sm(void)
{
	int blocks = 0;

	gpu_check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.where, GPU_COOPERATIVE_THREADS, 0));
	return (unsigned int)blocks;
}

static CUresult launch_cooperative_clusters(unsigned int size, unsigned int blocks)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};
	CUlaunchAttribute attributes[] = {
		{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
		{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {size, 1, 1}},
	};
	const CUlaunchConfig config = {.gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1,
	                               .blockDimX = GPU_COOPERATIVE_THREADS, .blockDimY = 1, .blockDimZ = 1,
	                               .attrs = attributes, .numAttrs = 2};

	return cuLaunchKernelEx(&config, gpu.where, parameters, NULL);
}

/* Three TPCs have room for one cluster of two TPCs' SMs at a time: the TPC that is left over holds no cluster. */
static void test_whole_clusters(void **state)
{
	unsigned int size = 2 * gpu.topology->sms_per_tpc, room = size * blocks_per_sm();
	uint64_t first = widened();
	struct tpcset set;

	(void)state;
	gpu_need_clusters();
	set = part_of_virtual_gpc(virtual_gpc_of(3), 3);
	gpu_set_partition(&gpu, &set);
	gpu_check(launch_cooperative_clusters(size, room));
	struct tpcset ran = gpu_read_tpcs(&gpu, gpu.output, room);

	assert_true(tpcset_is_subset(&ran, &set));
	assert_int_equal(widened(), first);
	gpu_check(launch_cooperative_clusters(size, room + size));
	gpu_check(cuCtxSynchronize());
	assert_int_equal(widened(), first + 1);
}

/* Before Hopper, a descriptor does not say either that its launch is cooperative. */
static void test_descriptors_that_are_not_known(void **state)
{
	struct tpcset set = gpu_range(0, 3);
	struct segment_counters first, second;

	(void)state;
	if (!gpu_is_simulated())
		gpu_skip("this driver's descriptors are known");
	gpu_set_partition(&gpu, &set);
	first = gpu_counters();
	setenv("SIM_FAULTS", "bad-qmd", 1);
	run_cooperative(8);
	unsetenv("SIM_FAULTS");
	second = gpu_counters();
	assert_int_equal(second.reasons[SEGMENT_UNKNOWN_QMD], first.reasons[SEGMENT_UNKNOWN_QMD] + 1);
	assert_int_equal(second.restricted, first.restricted);
}

static void test_refusals_stay_the_drivers(void **state)
{
	(void)state;
	assert_int_equal(gpu_launch_cooperative(&gpu, 64 * gpu.sm_count),
	                 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cluster_of_16_on_8_sms),
		cmocka_unit_test(test_cluster_of_8_across_two_gpcs),
		cmocka_unit_test(test_cluster_of_4_on_singletons),
		cmocka_unit_test(test_clusters_of_2_and_4_on_few_tpcs),
		cmocka_unit_test(test_what_fits_stays),
		cmocka_unit_test(test_clusters_of_8_in_every_gpc),
		cmocka_unit_test(test_cooperative_grids),
		cmocka_unit_test(test_whole_clusters),
		cmocka_unit_test(test_descriptors_that_are_not_known),
		cmocka_unit_test(test_refusals_stay_the_drivers),
	};

	return cmocka_run_group_tests_name("misfits", tests, gpu_set_up, NULL);
}
