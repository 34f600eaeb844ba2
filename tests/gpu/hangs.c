/*
 * The simulator detects every launch that was seen to hang (facts.md, "Launches that never finish"), and runs
 * those that finished. On the hardware, only those that finished are tried.
 *
 * Runs without nvtaskset, which would prevent such launches.
 *
 * gpus: h200 blackwell hopper-synthetic
 * runs: bare
 */
#include "../cases.h"
#include "support/child.h"
#include "support/first_gpu.h"
#include "support/subscriber.h"

enum partition {
	NOTHING, EIGHT_SMS, EIGHT_SMS_OF_ONE_GPC, SIXTEEN_SMS_OF_ONE_GPC, FOUR_SMS_IN_EACH_OF_TWO_GPCS, SINGLETONS, ONE_SINGLETON
};

static struct tpcset set_of(enum partition partition)
{
	struct tpcset one, other;

	switch (partition) {
	case EIGHT_SMS:
		return gpu_range(0, 3);
	case EIGHT_SMS_OF_ONE_GPC:
	case SIXTEEN_SMS_OF_ONE_GPC:
		return gpu_some_of_gpc(gpu_gpc_with(partition == EIGHT_SMS_OF_ONE_GPC ? 4 : 8), partition == EIGHT_SMS_OF_ONE_GPC ? 4 : 8);
	case FOUR_SMS_IN_EACH_OF_TWO_GPCS:
		one = gpu_some_of_gpc(0, 2);
		other = gpu_some_of_gpc(1, 2);
		return tpcset_or(&one, &other);
	case SINGLETONS:
		return gpu_singletons(&gpu);
	case ONE_SINGLETON:
		return gpu_first_of(gpu_singletons(&gpu), 1);
	default:
		return (struct tpcset){{0}};
	}
}

/* --- the tables of facts.md, "Launches that never finish" ---------------------------------------------- */

static bool simulated, has_clusters, has_singletons, has_eight_blocks_per_sm;

enum {
	PLAIN = 0,
	COOPERATIVE = -1
};

static const struct launch {
	const char *name;
	enum partition partition;
	int cluster;            /* its blocks, or one of these */
	unsigned int blocks;    /* of a cooperative one; 0: 8 for each SM */
	const bool *is_for_gpu; /* NULL: any */
	bool hangs;
} launches[] = {
	{"any kernel, nowhere", NOTHING, PLAIN, 0, NULL, true},
	{"clusters of 16 on 8 SMs", EIGHT_SMS_OF_ONE_GPC, 16, 0, &has_clusters, true},
	{"clusters of 8 across GPCs", FOUR_SMS_IN_EACH_OF_TWO_GPCS, 8, 0, &has_clusters, true},
	{"clusters of 4 on singletons", SINGLETONS, 4, 0, &has_singletons, true},
	{"132 cooperative blocks on 8 SMs", EIGHT_SMS, COOPERATIVE, 132, &has_eight_blocks_per_sm, true},
	{"8 for each SM of the GPU, on 8 SMs", EIGHT_SMS, COOPERATIVE, 0, &has_eight_blocks_per_sm, true},
	{"clusters of 8 on 8 SMs", EIGHT_SMS_OF_ONE_GPC, 8, 0, &has_clusters, false},
	{"clusters of 16 on 16 SMs", SIXTEEN_SMS_OF_ONE_GPC, 16, 0, &has_clusters, false},
	{"clusters of 2 on a singleton", ONE_SINGLETON, 2, 0, &has_singletons, false},
	{"64 cooperative blocks on 8 SMs", EIGHT_SMS, COOPERATIVE, 64, &has_eight_blocks_per_sm, false},
};

static const struct launch *launch;

static void run_launch(void)
{
	unsigned int size = launch->cluster > 0 ? (unsigned int)launch->cluster : 1;
	uint32_t sms[32];

	gpu_initialise();
	subscriber_open(subscriber_narrow);
	gpu_open(&gpu, 0);
	subscriber_narrow_to(&gpu, set_of(launch->partition));
	if (launch->cluster > 0)
		gpu_where_clusters(&gpu, size, 2 * size, sms);
	else if (launch->cluster == PLAIN)
		gpu_run(&gpu);
	else
		gpu_check(gpu_launch_cooperative(&gpu, launch->blocks > 0 ? launch->blocks : 8 * gpu.sm_count));
	gpu_check(cuCtxSynchronize());
}

static void look_at_gpu(void)
{
	gpu_set_up(NULL);
	struct tpcset alone = gpu_singletons(&gpu);

	_exit(1 | gpu_is_simulated() << 1 | (gpu.topology->compute_major >= 9) << 2 | !tpcset_is_empty(&alone) << 3 |
	      (gpu_blocks_per_sm(&gpu) == 8) << 4);
}

/* In a child, like everything in this file: CUDA does not survive a fork. */
FIXTURE(set_up)
{
	struct child_end end = child_run(look_at_gpu);
	int answer = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : 0;

	if (!(answer & 1))
		fail_msg("%s", end.errors);
	simulated = answer & 2;
	has_clusters = answer & 4;
	has_singletons = has_clusters && answer & 8;
	has_eight_blocks_per_sm = answer & 16;
}

static void run_all(bool hang)
{
	for (launch = launches; launch < launches + COUNT_OF(launches); launch++) {
		if (launch->hangs != hang || (launch->is_for_gpu && !*launch->is_for_gpu))
			continue;
		ROW("%s", launch->name);
		struct child_end end = child_run(run_launch);

		if (!hang) {
			child_assert_passed(&end);
			continue;
		}
		assert_true(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
		if (!strstr(end.errors, "simulated GPU: this launch would never finish: "))
			fail_msg("%s", end.errors);
	}
}

TEST(those_that_end)
{
	run_all(false);
}

TEST(those_that_hang)
{
	if (!simulated)
		gpu_skip("on the hardware they would never finish");
	run_all(true);
}

RUN_TESTS_IN(set_up, NULL, NULL, NULL)
