/*
 * Usage: progress BLOCKS START SECONDS
 *
 * Runs one long kernel, and prints its progress: "MS,LAPS" for each 10 ms on the GPU's clock, which all processes
 * share. It starts at the time START (in seconds, as of date +%s.%N) and works for SECONDS. Its BLOCKS stay all the
 * time, one to an SM if there is room; "many" means more blocks of one lap each than there is time for, two to an SM.
 */
#include "bench.h"
#include "bench_kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 1024
#define BLOCKS_PER_SM 2
#define ROUNDS 4000
#define LAP_NS_AT_LEAST 120000 /* 130 µs alone on an SM of an H200, 260 µs beside another */
#define BIN_NS 10000000
#define BINS_MAX 100000

static struct bench_gpu gpu;

struct shape {
	uint32_t blocks, laps; /* laps of each block */
};

static struct shape read_shape(const char *text, double seconds)
{
	uint32_t laps = (uint32_t)(seconds * 1e9 / LAP_NS_AT_LEAST) + 1;
	struct shape shape = {.laps = laps};

	if (strcmp(text, "many") == 0)
		shape = (struct shape){.blocks = gpu.sm_count * BLOCKS_PER_SM * laps, .laps = 1};
	else
		shape.blocks = (uint32_t)bench_number(text, "BLOCKS");
	return shape;
}

static uint64_t read_clock(CUfunction function, CUdeviceptr output)
{
	void *arguments[] = {&output};
	const struct bench_launch launch = {function, 1, 1, 1, 1, 0, arguments};
	uint64_t clock;

	bench_start(&gpu, &launch);
	bench_wait(&gpu);
	bench_check(cuMemcpyDtoH_v2(&clock, output, sizeof clock));
	return clock;
}

static void sleep_until(double time)
{
	const struct timespec start = {.tv_sec = (time_t)time, .tv_nsec = (long)((time - (double)(time_t)time) * 1e9)};

	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &start, NULL);
}

/* --- laps by time -------------------------------------------------------------------------------------------- */

/* A lap that was not run has the stamp 0; on a simulated GPU all laps have it. */
static bool was_run(uint64_t stamp)
{
	return stamp != 0 || gpu.is_simulated;
}

static void print(const uint64_t *stamps, size_t count)
{
	static size_t laps[BINS_MAX];
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < count; i++) {
		if (was_run(stamps[i]) && stamps[i] / BIN_NS < first)
			first = stamps[i] / BIN_NS;
		if (was_run(stamps[i]) && stamps[i] / BIN_NS > last)
			last = stamps[i] / BIN_NS;
	}
	if (first > last || last - first >= BINS_MAX)
		bench_fail("no lap was run, or the GPU's clock jumps");
	for (size_t i = 0; i < count; i++)
		laps[was_run(stamps[i]) ? stamps[i] / BIN_NS - first : 0] += was_run(stamps[i]);
	for (uint64_t bin = first; bin <= last; bin++)
		printf("%" PRIu64 ",%zu\n", bin * (BIN_NS / 1000000), laps[bin - first]);
}

int main(int count, char **arguments)
{
	if (count != 4)
		bench_fail("Usage: progress BLOCKS|many START SECONDS");
	double start = bench_number(arguments[2], "START"), seconds = bench_number(arguments[3], "SECONDS");

	bench_open(&gpu);
	CUfunction clock = bench_kernel(bench_kernels_ptx, "read_clock");
	struct shape shape = read_shape(arguments[1], seconds);
	size_t laps = (size_t)shape.blocks * shape.laps;
	uint64_t *stamps = calloc(laps, sizeof *stamps);
	CUdeviceptr output = bench_filled(laps * sizeof *stamps / sizeof(uint32_t), 0);
	uint64_t deadline;
	uint32_t rounds = ROUNDS;
	void *parameters[] = {&output, &deadline, &rounds, &shape.laps};
	const struct bench_launch launch = {bench_kernel(bench_kernels_ptx, "laps"), shape.blocks, 1, THREADS, 1, 0,
	                                    parameters};

	if (!stamps)
		bench_fail("no memory for %zu laps", laps);
	/* Loads and compiles what the first use needs: this launch's deadline has passed, so it runs no lap. */
	deadline = read_clock(clock, output);
	bench_start(&gpu, &launch);
	bench_wait(&gpu);
	sleep_until(start);
	deadline = read_clock(clock, output) + (uint64_t)(seconds * 1e9);
	bench_start(&gpu, &launch);
	bench_wait(&gpu);
	bench_check(cuMemcpyDtoH_v2(stamps, output, laps * sizeof *stamps));
	print(stamps, laps);
	free(stamps);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
