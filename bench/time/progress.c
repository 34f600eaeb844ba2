/*
 * Usage: progress BLOCKS SECONDS
 *
 * Each time that it is made to work (support/conversation.h), it runs one kernel for SECONDS, and prints its progress: "MS,LAPS"
 * for each 10 ms on the GPU's clock, which all processes share. Its BLOCKS stay all the time, one to an SM if there is room;
 * "many" means more blocks of one lap each than there is time for, two to an SM.
 */
#include "bench.h"
#include "bench_kernels.h"
#include "conversation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static struct {
	CUfunction clock, laps;
	struct shape shape;
	CUdeviceptr output;
	uint64_t *stamps; /* read from there */
	double seconds;
} work;

static size_t lap_count(void)
{
	return (size_t)work.shape.blocks * work.shape.laps;
}

/* Until so much later. */
static void run(double seconds)
{
	uint64_t deadline = read_clock(work.clock, work.output) + (uint64_t)(seconds * 1e9);
	uint32_t rounds = ROUNDS;
	void *arguments[] = {&work.output, &deadline, &rounds, &work.shape.laps};

	bench_start(&gpu, &(const struct bench_launch){work.laps, work.shape.blocks, 1, THREADS, 1, 0, arguments});
	bench_wait(&gpu);
}

static void step(void)
{
	run(work.seconds);
	bench_check(cuMemcpyDtoH_v2(work.stamps, work.output, lap_count() * sizeof *work.stamps));
	print(work.stamps, lap_count());
}

int main(int count, char **arguments)
{
	if (count != 3)
		bench_fail("Usage: progress BLOCKS|many SECONDS");
	conversation_listen();
	bench_open(&gpu);
	work.seconds = bench_number(arguments[2], "SECONDS");
	work.shape = read_shape(arguments[1], work.seconds);
	work.clock = bench_kernel(bench_kernels_ptx, "read_clock");
	work.laps = bench_kernel(bench_kernels_ptx, "laps");
	work.output = bench_filled(lap_count() * sizeof *work.stamps / sizeof(uint32_t), 0);
	work.stamps = calloc(lap_count(), sizeof *work.stamps);
	if (!work.stamps)
		bench_fail("no memory for %zu laps", lap_count());
	run(0); /* loads what the first use needs, and runs no lap */
	conversation_hold(&(const struct conversation){.step = step, .is_once = true}, gpu.sm_count);
	free(work.stamps);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
