/*
 * Usage: throughput SECONDS
 *
 * Launches one kernel after another and prints how many a second finished. Each needs every SM that it may
 * use for a while, so the rate says how much of the GPU this program has.
 */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
	double seconds = count == 2 ? atof(arguments[1]) : 0;
	struct gpu_under_test gpu;
	unsigned long launches = 0;

	if (seconds <= 0) {
		fputs("Usage: throughput SECONDS\n", stderr);
		return EXIT_FAILURE;
	}
	gpu_initialise();
	gpu_open(&gpu, 0);
	double start = now();

	for (; now() - start < seconds; launches++)
		gpu_run(&gpu);
	printf("%.0f kernels/s\n", (double)launches / (now() - start));
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
