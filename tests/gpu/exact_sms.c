/* A kernel runs on all SMs of its partition and on no other: for every single TPC, and for random subsets. */
#include "support/first_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

#define SUBSETS 40


static void check(const struct tpcset *set)
{
	gpu_set_partition(&gpu, set);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, set);
}

static void test_every_single_tpc(void **state)
{
	(void)state;
	for (unsigned int tpc = 0; tpc < gpu.topology->tpc_count; tpc++) {
		struct tpcset set = gpu_range(tpc, tpc);

		check(&set);
	}
}

static void test_random_subsets(void **state)
{
	(void)state;
	srandom(20251121);
	for (unsigned int i = 0; i < SUBSETS; i++) {
		unsigned int share = 1 + (unsigned int)random() % 9; /* so that there are small and large sets */
		struct tpcset set = gpu_range(0, 0);

		for (unsigned int tpc = 0; tpc < gpu.topology->tpc_count; tpc++) {
			if ((unsigned int)random() % 10 < share)
				tpcset_add(&set, tpc);
		}
		check(&set);
	}
}

static void test_whole_gpu(void **state)
{
	struct tpcset all = gpu_all(&gpu);

	(void)state;
	check(&all);
}

static void test_each_gpc(void **state)
{
	(void)state;
	for (unsigned int gpc = 0; gpc < TOPOLOGY_GPCS_MAX; gpc++) {
		struct tpcset set = topology_gpc(gpu.topology, gpc);

		if (!tpcset_is_empty(&set))
			check(&set);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_gpu),
		cmocka_unit_test(test_every_single_tpc),
		cmocka_unit_test(test_random_subsets),
		cmocka_unit_test(test_each_gpc),
	};

	return cmocka_run_group_tests_name("exact_sms", tests, gpu_set_up, NULL);
}
