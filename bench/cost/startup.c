/*
 * Usage: startup COMMAND…
 *        startup [--driver]
 *
 * Measures the time from the start of a command to its first kernel. With a COMMAND, writes the time into the
 * environment and executes COMMAND, which ends in this program without a COMMAND: that runs a kernel and prints how
 * many ms have passed. With --driver it only loads the driver's library, and prints the time until then.
 */
#include "bench.h"
#include "gpu/kernels.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
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

static void tell_time(const char *start)
{
	printf("%.3f\n", (double)(bench_now() - strtoll(start, NULL, 10)) / 1e6);
}

static void load_driver(const char *start)
{
	if (!dlopen("libcuda.so.1", RTLD_NOW))
		bench_fail("%s", dlerror());
	tell_time(start);
}

static void run_kernel(const char *start)
{
	struct bench_gpu gpu;

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
	tell_time(start);
	bench_close(&gpu);
}

int main(int count, char **arguments)
{
	const char *text = getenv(START);
	bool driver_only = count == 2 && strcmp(arguments[1], "--driver") == 0;

	if (count > 1 && !driver_only)
		start(arguments + 1);
	if (!text)
		bench_fail("not started by 'startup COMMAND…'");
	if (driver_only)
		load_driver(text);
	else
		run_kernel(text);
	return EXIT_SUCCESS;
}
