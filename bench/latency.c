/*
 * Usage: latency
 *
 * What a launch costs its caller, in ns: the median over batches of 100 launches that are not waited for, and the
 * median of a launch and the wait for it. bench/run compares the two with and without nvtaskset, in turn.
 */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCHES 400
#define BATCH 100

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, compare);
	return values[count / 2];
}

int main(void)
{
	static double submission[BATCHES], round_trip[BATCHES];
	struct gpu_under_test gpu;

	gpu_initialise();
	gpu_open(&gpu, 0);
	for (int batch = 0; batch < BATCHES; batch++) {
		double start = now();

		for (int i = 0; i < BATCH; i++)
			gpu_launch_empty(&gpu);
		submission[batch] = (now() - start) / BATCH;
		gpu_check(cuCtxSynchronize());
		start = now();
		gpu_launch_empty(&gpu);
		gpu_check(cuCtxSynchronize());
		round_trip[batch] = now() - start;
	}
	printf("%.0f %.0f\n", median(submission, BATCHES), median(round_trip, BATCHES));
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
