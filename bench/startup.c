/*
 * Usage: startup COMMAND…
 *        startup
 *
 * The time from the start of a command to its first kernel. With a COMMAND: notes the time in the environment and
 * executes it. Without: is what such a COMMAND ends in: runs a kernel, and prints how many ms have passed.
 */
#include "bench.h"
#include "kernels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START "BENCH_START"

static _Noreturn void start(char **command)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRId64, bench_now());
	setenv(START, text, 1);
	execvp(command[0], command);
	bench_fail("%s: %s", command[0], strerror(errno));
}

int main(int count, char **arguments)
{
	const char *text = getenv(START);
	struct bench_gpu gpu;

	if (count > 1)
		start(arguments + 1);
	if (!text)
		bench_fail("not started by 'startup COMMAND…'");
	bench_open(&gpu);
	const struct bench_launch launch = {
		.function = bench_kernel(kernels_ptx, "nothing"),
		.grid_x = 1,
		.grid_y = 1,
		.block_x = 1,
		.block_y = 1,
	};

	bench_start(&gpu, &launch);
	bench_wait(&gpu);
	printf("%.3f\n", (double)(bench_now() - strtoll(text, NULL, 10)) / 1e6);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
