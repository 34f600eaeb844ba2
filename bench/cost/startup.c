/*
 * Usage: startup COMMAND…
 *        startup [--driver|--launch]
 *
 * Measures the time from the start of a command to its first kernel. With a COMMAND, writes the time into the
 * environment and executes COMMAND, which ends in this program without a COMMAND: that runs a kernel and prints how
 * many ms have passed. With --driver it only loads the driver's library, and prints the time until then. With --launch it prints how
 * many µs passed from when it had a context to the end of the kernel, with loading its module.
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
	int64_t opened = bench_now();
	const struct bench_launch launch = {bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};

	bench_start(&gpu, &launch);
	bench_wait(&gpu);
	if (start)
		tell_time(start);
	else
		printf("%.1f\n", (double)(bench_now() - opened) / 1e3);
	bench_close(&gpu);
}

int main(int count, char **arguments)
{
	const char *text = getenv(START);
	bool is_driver = count == 2 && strcmp(arguments[1], "--driver") == 0;
	bool is_launch = count == 2 && strcmp(arguments[1], "--launch") == 0;

	if (count > 1 && !is_driver && !is_launch)
		start(arguments + 1);
	if (is_launch)
		run_kernel(NULL);
	else if (!text)
		bench_fail("not started by 'startup COMMAND…'");
	else if (is_driver)
		load_driver(text);
	else
		run_kernel(text);
	return EXIT_SUCCESS;
}
