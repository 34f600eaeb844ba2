/* A kernel runs on all SMs of its partition and on no other: for every single TPC, and for random subsets. */
#include "../cases.h"
#include "support/first_gpu.h"

static void check(struct tpcset set)
{
	gpu_set_partition(&gpu, set);
	gpu_assert_runs_in(&gpu, NULL, set);
}

TEST(every_single_tpc)
{
	for (unsigned int tpc = 0; tpc < gpu.topology->tpc_count; tpc++)
		check(gpu_range(tpc, tpc));
}

TEST(random_subsets)
{
	srandom(20251121);
	for (unsigned int i = 0; i < 40; i++) {
		unsigned int share = 1 + (unsigned int)random() % 9; /* so that there are small and large sets */
		struct tpcset set = gpu_range(0, 0);

		for (unsigned int tpc = 0; tpc < gpu.topology->tpc_count; tpc++) {
			if ((unsigned int)random() % 10 < share)
				tpcset_add(&set, tpc);
		}
		check(set);
	}
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, NULL)
