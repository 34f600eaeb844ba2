/*
 * CUPTI has the driver's callbacks before nvtaskset --attach: the partition says that it is not in force, and comes
 * into force when CUPTI unsubscribes. Runs without nvtaskset; BUILD is the build directory.
 */
#include "gpu.h"
#include "tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int attach(void)
{
	char line[256];

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	snprintf(line, sizeof line, "\"$BUILD\"/nvtaskset --attach -tp 0-7 %d", (int)getpid());
	int status = system(line);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_cupti_first(void **state)
{
	struct tpcset wanted = gpu_range(0, 7), all, ran;
	struct gpu_under_test gpu;

	(void)state;
	gpu_initialise();
	gpu_open(&gpu, 0);
	all = gpu_all(&gpu);
	assert_int_equal(tool_subscribe(), 0);
	assert_int_equal(tool_enable_launches(true), 0);
	assert_int_equal(attach(), 3); /* the partition was changed and is not in force */
	assert_false(gpu_is_in_force());
	ran = gpu_where(&gpu, NULL);
	gpu_assert_equal(&ran, &all);
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
	ran = gpu_where(&gpu, NULL);
	gpu_assert_equal(&ran, gpu_is_in_force() ? &wanted : &all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cupti_first),
	};

	return cmocka_run_group_tests_name("cupti_first", tests, NULL, NULL);
}
