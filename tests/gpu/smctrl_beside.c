/*
 * libsmctrl in a program that already has a partition by nvtaskset --attach: one library gets the callbacks and knows partition and
 * masks. And libsmctrl after a tool that has the driver's callbacks. BUILD is the build directory, where the command is.
 */
#include "../cases.h"
#include "libsmctrl.h"

#include "support/child.h"
#include "support/graph.h"
#include "support/subscriber.h"

static void assert_runs_in(unsigned int first, unsigned int last)
{
	struct tpcset set = gpu_range(first, last);

	gpu_assert_inside(&set);
}

TEST_BY(child_run_to_attach, attached_before)
{
	const char *build = getenv("BUILD");
	char command[512];

	graph_set_up(NULL);
	/* For kernels that let only its parents trace a process. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	snprintf(command, sizeof command, "%s/nvtaskset --attach -tp 2-6 %d >/dev/null", build ? build : "build", (int)getpid());
	assert_int_equal(system(command), 0);
	assert_runs_in(2, 6);
	assert_int_equal(libsmctrl_set_global_mask(~UINT64_C(0x1f)), 0);
	assert_runs_in(2, 4);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, ~UINT64_C(0x40)), 0);
	assert_runs_in(6, 6);
	/* Each launch is counted once. */
	assert_int_equal(gpu_counters().restricted, 3);
}

/* Masks come into force when the tool unsubscribes. */
TEST_IN_CHILD(tool_first)
{
	graph_set_up(NULL);
	struct tpcset all = gpu_all(&gpu);

	subscriber_open(NULL);
	assert_int_equal(libsmctrl_set_global_mask(~UINT64_C(0x1f)), 0);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, ~UINT64_C(0x40)), 0);
	gpu_assert_runs_in(&gpu, NULL, &all);
	subscriber_close();
	assert_runs_in(6, 6);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, 0), 0);
	assert_runs_in(0, 4);
}

RUN_TESTS(NULL, NULL)
