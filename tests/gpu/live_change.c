/* A changed partition is in force from the next launch on. */
/* gpus: h200 turing blackwell */
#include "../cases.h"
#include "support/first_gpu.h"

/* This set must change nothing: launches stay inside the former partition, and it is counted. */
static void assert_not_believed(struct tpcset before, struct tpcset set)
{
	gpu_set_partition(&gpu, before);
	gpu_run(&gpu);
	struct segment_counters counted = gpu_counters();

	gpu_set_partition(&gpu, set);
	for (int i = 0; i < 2; i++)
		gpu_assert_runs_in(&gpu, NULL, before);
	struct segment_counters after = gpu_counters();

	assert_int_equal(after.reasons[SEGMENT_NO_SUCH_TPC], counted.reasons[SEGMENT_NO_SUCH_TPC] + 1);
	assert_int_equal(after.restricted + after.unrestricted, counted.restricted + counted.unrestricted + 2);
	if (tpcset_count(&before) < gpu.topology->tpc_count)
		assert_int_equal(after.unrestricted, counted.unrestricted);
}

/* The command and the API write no set without a TPC of this GPU. If something else writes one, the program must
 * neither run outside the partition nor hang. */
TEST(a_set_without_a_tpc_changes_nothing)
{
	const struct tpcset none = {{0}};

	assert_not_believed(gpu_range(1, 3), none);
	assert_not_believed(gpu_range(1, 3), gpu_range(gpu.topology->tpc_count, TPCSET_MAX - 1));
	assert_not_believed(gpu_all(&gpu), none);
	gpu_set_partition(&gpu, gpu_range(1, 3));
	gpu_assert_inside(gpu_range(1, 3));
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, NULL)
