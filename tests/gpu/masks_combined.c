/*
 * The driver has masks of its own, for green contexts and clusters (facts.md, "Launch descriptors"): a kernel runs
 * on the TPCs that both the driver's mask and the partition allow.
 *
 * gpus: h200 turing ada blackwell hopper-synthetic
 */
#include "../cases.h"
#include "support/green.h"

TEST_WITH(NULL, green_leave, green_alone)
{
	green_enter();
	assert_int_equal(tpcset_count(&green.tpcs) * gpu.topology->sms_per_tpc, GREEN_SMS);
}

/* Every other member of a set. */
static struct tpcset half_of(struct tpcset set)
{
	struct tpcset half = {{0}};
	unsigned int count = 0;

	for (unsigned int tpc = tpcset_next(&set, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&set, tpc + 1))
		tpcset_add(&half, count++ % 2 == 0 ? tpc : TPCSET_MAX);
	return half;
}

TEST_WITH(NULL, green_leave, green_and_partition)
{
	struct tpcset partition = half_of(gpu_all(&gpu));

	green_enter();
	struct tpcset both = tpcset_and(&green.tpcs, &partition);

	assert_false(tpcset_is_empty(&both));
	gpu_set_partition(&gpu, partition);
	gpu_assert_runs_in(&green.inside, NULL, both);
}

/* Nothing runs outside and nothing hangs: the partition wins, and each launch is counted. */
TEST_WITH(NULL, green_leave, green_outside_partition)
{
	struct tpcset all = gpu_all(&gpu);

	green_enter();
	struct tpcset outside = tpcset_without(&all, &green.tpcs);
	struct tpcset partition = half_of(outside);

	gpu_set_partition(&gpu, partition);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t before = gpu_counted(SEGMENT_GREEN_CONTEXT);
		gpu_assert_runs_in(&green.inside, NULL, partition);
		assert_true(gpu_counted(SEGMENT_GREEN_CONTEXT) > before);
	}
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, NULL)
