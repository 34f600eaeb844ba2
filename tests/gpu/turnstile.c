/*
 * Clients of MPS that were given something in time: their launches are held back at the entry of the call.
 */
#include "../alone.h"
#include "state/segment.h"
#include "support/first_gpu.h"
#include "support/timed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- MPS, as programs see it: the pipe of its daemon --------------------------------------------------------------------- */

static char mps[32];

static void control_path(char path[64])
{
	snprintf(path, 64, "%s/control", mps);
}

static int set_up(void **state)
{
	char path[64];

	(void)state;
	snprintf(mps, sizeof mps, "/tmp/nvtaskset-mps-XXXXXX");
	if (!mkdtemp(mps))
		return -1;
	control_path(path);
	int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	setenv("CUDA_MPS_PIPE_DIRECTORY", mps, 1);
	return file < 0 ? -1 : close(file);
}

static int tear_down(void **state)
{
	char path[64];

	(void)state;
	control_path(path);
	unlink(path);
	rmdir(mps);
	return unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

/* --- a quota -------------------------------------------------------------------------------------------------------------- */

static const struct segment_revision tenth = {.quota = {.run_us = 10000, .period_us = 100000}};

static void give_to_client(const struct segment_revision *wanted)
{
	timed_open_gpu();
	timed_give(wanted);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_HELD);
	gpu_launch_empty(&gpu);
}

/* Kernels of 1 to 2 ms: each tenth of a second has room for some ten. */
static void stay_within_quota(void)
{
	give_to_client(&tenth);
	double begin = timed_now_s();
	unsigned int kernels = 0;

	while (timed_now_s() - begin < 1) {
		timed_launch(1);
		gpu_check(cuCtxSynchronize());
		kernels++;
	}
	struct segment_time time = timed_look();

	fprintf(stderr, "%u kernels, %lu us present, %lu us held, bounded %lu\n", kernels, (unsigned long)time.present_us,
	        (unsigned long)time.aside_us, (unsigned long)time.bounded);
	assert_in_range(kernels, 20, 130);
	assert_in_range(time.present_us, 50000, 200000);
	assert_in_range(time.aside_us, 100000, 1000000);
}

TIMED_TEST(test_quota, timed_run_and_pass, stay_within_quota)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_quota, set_up, tear_down),
	};

	live_alone();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
