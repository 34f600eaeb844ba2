/*
 * The driver has masks of its own, for green contexts and clusters (docs/facts.md, "Launch descriptors"): a kernel runs
 * on the TPCs that both the driver's mask and the partition allow.
 */
#include "support/green.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>


/* --- green contexts ---------------------------------------------------------------------------------------- */

static void test_green_alone(void **state)
{
	(void)state;
	green_enter();
	assert_int_equal(tpcset_count(&green.tpcs) * gpu.topology->sms_per_tpc, GREEN_SMS);
}

/* Every other member of a set. */
static struct tpcset half_of(const struct tpcset *set)
{
	struct tpcset half = {{0}};
	bool wanted = true;

	for (unsigned int tpc = tpcset_next(set, 0); tpc < TPCSET_MAX; tpc = tpcset_next(set, tpc + 1)) {
		if (wanted)
			tpcset_add(&half, tpc);
		wanted = !wanted;
	}
	return half;
}

static void test_green_and_partition(void **state)
{
	struct tpcset all = gpu_all(&gpu), partition = half_of(&all);

	(void)state;
	green_enter();
	struct tpcset both = tpcset_and(&green.tpcs, &partition);

	assert_false(tpcset_is_empty(&both));
	gpu_set_partition(&gpu, &partition);
	struct tpcset ran = gpu_where(&green.inside, NULL);

	gpu_assert_equal(&ran, &both);
}

static void test_stream_of_green_context(void **state)
{
	struct tpcset all = gpu_all(&gpu), partition = half_of(&all);

	(void)state;
	green_enter();
	struct tpcset both = tpcset_and(&green.tpcs, &partition);

	gpu_set_partition(&gpu, &partition);
	CUstream stream = green_stream();
	struct tpcset ran = gpu_where(&green.inside, stream);

	gpu_check(cuStreamDestroy_v2(stream));
	gpu_assert_equal(&ran, &both);
}

static uint64_t overruled(void)
{
	return gpu_counters().reasons[SEGMENT_GREEN_CONTEXT];
}

/* Nothing runs outside and nothing hangs: the partition wins, and each launch is counted. */
static void test_green_outside_partition(void **state)
{
	struct tpcset all = gpu_all(&gpu);

	(void)state;
	green_enter();
	struct tpcset outside = tpcset_without(&all, &green.tpcs);
	struct tpcset partition = half_of(&outside);

	gpu_set_partition(&gpu, &partition);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t before = overruled();
		struct tpcset ran = gpu_where(&green.inside, NULL);

		gpu_assert_equal(&ran, &partition);
		assert_true(overruled() > before);
	}
}

static void test_partition_after_green_context(void **state)
{
	struct tpcset partition = gpu_range(0, 2);

	(void)state;
	gpu_set_partition(&gpu, &partition);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &partition);
}

/* --- clusters ------------------------------------------------------------------------------------------------ */

static unsigned int group_of(uint32_t sm)
{
	return gpu.topology->tpcs[sm / gpu.topology->sms_per_tpc].virtual_gpc;
}

/* Launches clusters of this size. Each must lie in one group, its blocks on SMs of their own, and all in the
 * partition. */
static struct tpcset run_clusters(unsigned int size, const struct tpcset *partition)
{
	enum { CLUSTERS = 24, LARGEST = 16 };
	uint32_t sms[CLUSTERS * LARGEST];
	struct tpcset ran = {{0}};

	gpu_set_partition(&gpu, partition);
	gpu_where_clusters(&gpu, size, CLUSTERS * size, sms);
	for (size_t block = 0; block < CLUSTERS * size; block++) {
		assert_int_equal(group_of(sms[block]), group_of(sms[block / size * size]));
		tpcset_add(&ran, sms[block] / gpu.topology->sms_per_tpc);
	}
	assert_true(tpcset_is_subset(&ran, partition));
	return ran;
}

static void test_clusters_keep_off_singletons(void **state)
{
	struct tpcset gpc = topology_virtual_gpc(gpu.topology, 0), alone = gpu_singletons(&gpu);
	struct tpcset partition = tpcset_or(&gpc, &alone);

	(void)state;
	gpu_need_clusters();
	struct tpcset ran = run_clusters(4, &partition);

	assert_true(tpcset_is_subset(&ran, &gpc));
}

static void test_clusters_in_every_gpc(void **state)
{
	struct tpcset all = gpu_all(&gpu), partition = half_of(&all);

	(void)state;
	gpu_need_clusters();
	run_clusters(2, &all);
	run_clusters(4, &all);
	run_clusters(8, &all);
	run_clusters(2, &partition);
}

static void test_pairs_on_singletons(void **state)
{
	struct tpcset alone = gpu_singletons(&gpu);

	(void)state;
	gpu_need_clusters();
	if (tpcset_is_empty(&alone))
		gpu_skip("this GPU has no singleton TPCs");
	run_clusters(gpu.topology->sms_per_tpc, &alone);
}

/* ------------------------------------------------------------------------------------------------------------- */

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_GREEN(test_green_alone),
		IN_GREEN(test_green_and_partition),
		IN_GREEN(test_stream_of_green_context),
		IN_GREEN(test_green_outside_partition),
		cmocka_unit_test(test_partition_after_green_context),
		cmocka_unit_test(test_clusters_keep_off_singletons),
		cmocka_unit_test(test_clusters_in_every_gpc),
		cmocka_unit_test(test_pairs_on_singletons),
	};

	return cmocka_run_group_tests_name("masks_combined", tests, gpu_set_up, NULL);
}
