/*
 * Usage: quota_cost ROUNDS
 *
 * What a quota costs that is never reached, within one process, which nvtaskset has started: the time from one kernel of 10 µs
 * to the next, of 10 000 that are launched in a row, with a quota of 9.9 of 10 s and without one, in another order each time.
 * As lines "9900ms/10s,NS" and "unlimited,NS".
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "own_segment.h"

#include <stdio.h>
#include <stdlib.h>

#define CYCLES UINT64_C(17000) /* 10 µs on an H100, with what begins and ends a kernel */
#define BATCH 500
#define BATCHES 20
#define PATIENCE_NS INT64_C(5000000000)

static struct bench_gpu gpu;
static struct bench_launch kernel;

static void run_batch(void)
{
	for (int i = 0; i < BATCH; i++)
		bench_start(&gpu, &kernel);
	bench_wait(&gpu);
}

static bool is_followed(bool on, enum segment_time_state state)
{
	return on ? state == SEGMENT_TIME_IN_FORCE || state == SEGMENT_TIME_HELD : state == SEGMENT_TIME_UNLIMITED;
}

/* Kernels run until it is in force, or is lifted: it is looked for in calls. */
static void set_quota(bool on)
{
	int64_t end = bench_now() + PATIENCE_NS;

	own_segment_set_quota(on);
	do {
		run_batch();
		if (bench_now() > end)
			bench_fail("the quota is not what was asked for: %s", segment_time_text(own_segment_time()));
	} while (!is_followed(on, own_segment_time()));
}

static void measure(int which)
{
	bool on = which == 0;

	set_quota(on);
	int64_t begin = bench_now();

	for (int i = 0; i < BATCHES; i++)
		run_batch();
	printf("%s,%.2f\n", own_segment_quota(on), (double)(bench_now() - begin) / (BATCH * BATCHES));
}

int main(int count, char **arguments)
{
	uint64_t cycles = CYCLES;
	CUdeviceptr output;
	void *values[] = {&output, &cycles};
	int rounds = bench_rounds(count, arguments);

	bench_open(&gpu);
	output = bench_memory(sizeof(uint32_t));
	kernel = (struct bench_launch){bench_kernel(kernels_ptx, "where"), 1, 1, 1, 1, 0, values};
	run_batch();
	for (int round = 0; round < rounds; round++)
		bench_round(round, 2, measure);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
