/*
 * libsmctrl in a program that already has a partition by nvtaskset --attach: one library gets the callbacks and knows partition and
 * masks. And libsmctrl after a tool that has the driver's callbacks. BUILD is the build directory, where the command is.
 *
 * runs: bare
 * link: libsmctrl.so.0
 */
#include "../cases.h"
#include "libsmctrl.h"

#include "support/child.h"
#include "support/graph.h"
#include "support/subscriber.h"

TEST_BY(child_run_to_attach, attached_before)
{
	graph_set_up(NULL);
	assert_int_equal(gpu_nvtaskset("--attach -tp 2-6"), 0);
	gpu_assert_inside(gpu_range(2, 6));
	assert_int_equal(libsmctrl_set_global_mask(~UINT64_C(0x1f)), 0);
	gpu_assert_inside(gpu_range(2, 4));
	assert_int_equal(libsmctrl_set_stream_mask(NULL, ~UINT64_C(0x40)), 0);
	gpu_assert_inside(gpu_range(6, 6));
	/* Each launch is counted once. */
	assert_int_equal(gpu_counters().restricted, 3);
}

/* Masks come into force when the tool unsubscribes. */
TEST_IN_CHILD(tool_first)
{
	graph_set_up(NULL);
	subscriber_open(NULL);
	assert_int_equal(libsmctrl_set_global_mask(~UINT64_C(0x1f)), 0);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, ~UINT64_C(0x40)), 0);
	gpu_assert_inside(gpu_all(&gpu));
	subscriber_close();
	gpu_assert_inside(gpu_range(6, 6));
	assert_int_equal(libsmctrl_set_stream_mask(NULL, 0), 0);
	gpu_assert_inside(gpu_range(0, 4));
}

RUN_TESTS(NULL, NULL)
