/*
 * libsmctrl in a program that already has a partition by nvtaskset --attach: one library gets the callbacks and knows
 * partition and masks. And libsmctrl after a tool that has the driver's callbacks. BUILD is the build directory, where
 * the command is.
 */
#include "libsmctrl.h"

#include "support/child.h"
#include "support/graph.h"
#include "support/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void assert_runs_in(unsigned int first, unsigned int last)
{
	struct tpcset set = gpu_range(first, last), ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &set);
}

static void be_attached_before(void)
{
	const char *build = getenv("BUILD");
	char command[512];

	graph_set_up(NULL);
	/* For kernels that let only its parents trace a process. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	snprintf(command, sizeof command, "%s/nvtaskset --attach -tp 2-6 %d >/dev/null", build ? build : "build",
	         (int)getpid());
	assert_int_equal(system(command), 0);
	assert_runs_in(2, 6);
	assert_int_equal(libsmctrl_set_global_mask(~UINT64_C(0x1f)), 0);
	assert_runs_in(2, 4);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, ~UINT64_C(0x40)), 0);
	assert_runs_in(6, 6);
	/* Each launch is counted once. */
	assert_int_equal(gpu_counters().restricted, 3);
}

static void test_attached_before(void **state)
{
	(void)state;
	child_run_to_attach(be_attached_before);
}

static void wait_for_a_tool(void)
{
	graph_set_up(NULL);
	struct tpcset all = gpu_all(&gpu);

	subscriber_open(NULL);
	assert_int_equal(libsmctrl_set_global_mask(~UINT64_C(0x1f)), 0);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, ~UINT64_C(0x40)), 0);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &all);
	subscriber_close();
	assert_runs_in(6, 6);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, 0), 0);
	assert_runs_in(0, 4);
}

/* Masks come into force when the tool unsubscribes. */
static void test_tool_first(void **state)
{
	(void)state;
	struct child_end end = child_run(wait_for_a_tool);

	child_assert_passed(&end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attached_before),
		cmocka_unit_test(test_tool_first),
	};

	return cmocka_run_group_tests_name("smctrl_beside", tests, NULL, NULL);
}
