/*
 * CUPTI has the driver's callbacks before nvtaskset --attach: the partition says that it is not in force, and comes
 * into force when CUPTI unsubscribes. Runs without nvtaskset; BUILD is the build directory.
 */
#include "../cases.h"
#include "gpu.h"
#include "tool.h"

TEST(cupti_first)
{
	struct gpu_under_test gpu;

	gpu_initialise();
	gpu_open(&gpu, 0);
	assert_int_equal(tool_subscribe(), 0);
	assert_int_equal(tool_enable_launches(true), 0);
	assert_int_equal(gpu_nvtaskset("--attach -tp 0-7"), 3); /* the partition was changed and is not in force */
	assert_false(gpu_is_in_force());
	gpu_assert_runs_in(&gpu, NULL, gpu_all(&gpu));
	assert_int_equal(tool_announced(), 1);
	assert_int_equal(tool_unsubscribe(), 0);
	if (!gpu_is_in_force()) {
		print_message("# CUPTI keeps its subscription until cuptiFinalize\n");
		assert_int_equal(tool_finalize(), 0);
	}
	/* CUPTI may unsubscribe with the driver's own function, which it got before us. Then the partition stays not in
	 * force, and says so. */
	if (!gpu_is_in_force())
		print_message("# nor then: it leaves past us\n");
	gpu_assert_runs_in(&gpu, NULL, gpu_is_in_force() ? gpu_range(0, 7) : gpu_all(&gpu));
}

RUN_TESTS(NULL, NULL)
