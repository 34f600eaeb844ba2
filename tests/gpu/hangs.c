/*
 * The simulator detects every launch that was seen to hang (docs/facts.md, "Launches that never finish"), and runs
 * those that finished. On the hardware, only those that finished are tried.
 *
 * Runs without nvtaskset, which would prevent such launches.
 */
#include "support/child.h"
#include "support/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- partitions ------------------------------------------------------------------------------------------- */

static struct gpu_under_test gpu;

/* The first `count` TPCs of the virtual GPC. */
static struct tpcset some_of_gpc(unsigned int virtual_gpc, unsigned int count)
{
	struct tpcset all = topology_virtual_gpc(gpu.topology, virtual_gpc), some = {{0}};
	unsigned int tpc = tpcset_next(&all, 0);

	assert_true(tpcset_count(&all) >= count);
	for (; count > 0; count--, tpc = tpcset_next(&all, tpc + 1))
		tpcset_add(&some, tpc);
	return some;
}

/* A virtual GPC with at least so many TPCs. */
static unsigned int gpc_with(unsigned int tpcs)
{
	unsigned int found = 0;

	while (found < gpu.topology->gpc_limit) {
		struct tpcset gpc = topology_virtual_gpc(gpu.topology, found);

		if (tpcset_count(&gpc) >= tpcs)
			break;
		found++;
	}
	assert_true(found < gpu.topology->gpc_limit);
	return found;
}

static void open_in(struct tpcset partition(void))
{
	gpu_initialise();
	subscriber_open(subscriber_narrow);
	gpu_open(&gpu, 0);
	struct tpcset set = partition();

	subscriber_narrow_to(&gpu, &set);
}

static struct tpcset nothing(void)
{
	return (struct tpcset){{0}};
}

static struct tpcset eight_sms_of_one_gpc(void)
{
	return some_of_gpc(gpc_with(4), 4);
}

static struct tpcset sixteen_sms_of_one_gpc(void)
{
	return some_of_gpc(gpc_with(8), 8);
}

static struct tpcset four_sms_in_each_of_two_gpcs(void)
{
	struct tpcset one = some_of_gpc(0, 2), other = some_of_gpc(1, 2);

	return tpcset_or(&one, &other);
}

static struct tpcset singletons(void)
{
	struct tpcset all = gpu_singletons(&gpu);

	assert_false(tpcset_is_empty(&all));
	return all;
}

static struct tpcset one_singleton(void)
{
	struct tpcset all = gpu_singletons(&gpu);
	unsigned int tpc = tpcset_next(&all, 0);

	assert_true(tpc < TPCSET_MAX);
	return gpu_range(tpc, tpc);
}

static struct tpcset eight_sms(void)
{
	return gpu_range(0, 3);
}

/* --- launches --------------------------------------------------------------------------------------------- */

static void run_clusters(unsigned int size)
{
	uint32_t sms[32];

	gpu_where_clusters(&gpu, size, 2 * size, sms);
}

static void run_cooperative(unsigned int blocks)
{
	gpu_check(gpu_launch_cooperative(&gpu, blocks));
	gpu_check(cuCtxSynchronize());
}

static void any_kernel_nowhere(void)
{
	open_in(nothing);
	gpu_run(&gpu);
}

static void cluster_of_16_on_8_sms(void)
{
	open_in(eight_sms_of_one_gpc);
	run_clusters(16);
}

static void cluster_of_8_across_gpcs(void)
{
	open_in(four_sms_in_each_of_two_gpcs);
	run_clusters(8);
}

static void cluster_of_4_on_singletons(void)
{
	open_in(singletons);
	run_clusters(4);
}

static void cooperative_132_on_8_sms(void)
{
	open_in(eight_sms);
	run_cooperative(132);
}

static void cooperative_eight_a_whole_gpu_on_8_sms(void)
{
	open_in(eight_sms);
	run_cooperative(8 * gpu.sm_count);
}

static void cluster_of_8_on_8_sms(void)
{
	open_in(eight_sms_of_one_gpc);
	run_clusters(8);
}

static void cluster_of_16_on_16_sms(void)
{
	open_in(sixteen_sms_of_one_gpc);
	run_clusters(16);
}

static void cluster_of_2_on_a_singleton(void)
{
	open_in(one_singleton);
	run_clusters(2);
}

static void cooperative_64_on_8_sms(void)
{
	open_in(eight_sms);
	run_cooperative(64);
}

/* --- the tables of docs/facts.md, "Launches that never finish" ---------------------------------------------- */

static bool simulated, has_clusters, has_singletons, has_eight_blocks_per_sm;

static void look_at_gpu(void)
{
	int blocks;

	gpu_initialise();
	gpu_open(&gpu, 0);
	gpu_check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.where, 256, 0));
	struct tpcset alone = gpu_singletons(&gpu);

	_exit(1 | gpu_is_simulated() << 1 | (gpu.topology->compute_major >= 9) << 2 |
	      !tpcset_is_empty(&alone) << 3 | (blocks == 8) << 4);
}

struct row {
	void (*body)(void);
	const bool *condition; /* NULL: any GPU */
};

static void skip_unless(const bool *condition, const char *reason)
{
	if (condition && !*condition)
		gpu_skip(reason);
}

static void test_hangs(void **state)
{
	const struct row *row = *state;

	skip_unless(row->condition, "this GPU has no clusters, no singletons, or SMs of another size");
	skip_unless(&simulated, "on the hardware this would never finish");
	struct child_end end = child_run(row->body);

	assert_true(WIFSIGNALED(end.status));
	assert_int_equal(WTERMSIG(end.status), SIGABRT);
	if (!strstr(end.errors, "simulated GPU: this launch would never finish: "))
		fail_msg("%s", end.errors);
}

static void test_runs(void **state)
{
	const struct row *row = *state;

	skip_unless(row->condition, "this GPU has no clusters, no singletons, or SMs of another size");
	struct child_end end = child_run(row->body);

	child_assert_passed(&end);
}

/* In a child, like every test in this file: CUDA does not survive a fork. */
static int set_up(void **state)
{
	struct child_end end = child_run(look_at_gpu);
	int answer = WIFEXITED(end.status) ? WEXITSTATUS(end.status) : 0;

	(void)state;
	if (!(answer & 1))
		print_error("%s", end.errors);
	simulated = answer & 2;
	has_clusters = answer & 4;
	has_singletons = has_clusters && answer & 8;
	has_eight_blocks_per_sm = answer & 16;
	return answer & 1 ? 0 : -1;
}

#define ROW(test, body, condition) {#body, test, NULL, NULL, &(struct row){body, condition}}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(test_hangs, any_kernel_nowhere, NULL),
		ROW(test_hangs, cluster_of_16_on_8_sms, &has_clusters),
		ROW(test_hangs, cluster_of_8_across_gpcs, &has_clusters),
		ROW(test_hangs, cluster_of_4_on_singletons, &has_singletons),
		ROW(test_hangs, cooperative_132_on_8_sms, &has_eight_blocks_per_sm),
		ROW(test_hangs, cooperative_eight_a_whole_gpu_on_8_sms, &has_eight_blocks_per_sm),
		ROW(test_runs, cluster_of_8_on_8_sms, &has_clusters),
		ROW(test_runs, cluster_of_16_on_16_sms, &has_clusters),
		ROW(test_runs, cluster_of_2_on_a_singleton, &has_singletons),
		ROW(test_runs, cooperative_64_on_8_sms, &has_eight_blocks_per_sm),
	};

	return cmocka_run_group_tests_name("hangs", tests, set_up, NULL);
}
