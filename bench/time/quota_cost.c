/*
 * Usage: quota_cost ROUNDS
 *
 * What a quota costs that is never reached, within one process, which nvtaskset has started: the time from one kernel of 10 µs
 * to the next, of 10 000 that are launched in a row, with a quota of 9.9 of 10 s and without one, in another order each time.
 * As lines "9900ms/10s,NS" and "unlimited,NS".
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CYCLES UINT64_C(17000) /* 10 µs on an H100, with what begins and ends a kernel */
#define BATCH 500
#define BATCHES 20
#define PERIOD_US 10000000
#define RUN_US 9900000
#define PATIENCE_NS INT64_C(5000000000)

static struct bench_gpu gpu;
static struct bench_launch kernel;
static struct segment segment;

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
	const struct segment_revision wanted = {.quota = {.run_us = on ? RUN_US : PERIOD_US, .period_us = PERIOD_US}};
	int64_t end = bench_now() + PATIENCE_NS;
	struct segment_time time;
	struct error error;

	if (segment_change(&segment, &wanted, NULL, &error) < 0)
		bench_fail("%s", error.reason);
	do {
		run_batch();
		segment_read_time(&segment, &time);
		if (bench_now() > end)
			bench_fail("the quota is not what was asked for: %s", segment_time_text(time.state));
	} while (time.number != segment_revision_number(&segment) ||
	         !is_followed(on, time.state));
}

static void measure(bool on)
{
	set_quota(on);
	int64_t begin = bench_now();

	for (int i = 0; i < BATCHES; i++)
		run_batch();
	printf("%s,%.2f\n", on ? "9900ms/10s" : "unlimited", (double)(bench_now() - begin) / (BATCH * BATCHES));
}

int main(int count, char **arguments)
{
	uint64_t cycles = CYCLES;
	CUdeviceptr output;
	void *values[] = {&output, &cycles};
	int rounds = count == 2 ? (int)bench_number(arguments[1], "ROUNDS") : 0;
	struct error error;

	if (rounds <= 0)
		bench_fail("usage: quota_cost ROUNDS");
	bench_open(&gpu);
	output = bench_memory(sizeof(uint32_t));
	kernel = (struct bench_launch){bench_kernel(kernels_ptx, "where"), 1, 1, 1, 1, 0, values};
	run_batch();
	if (segment_open(&segment, getpid(), &error) != SEGMENT_FOUND)
		bench_fail("%s", error.reason);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < 2; i++)
			measure((i + round) % 2 == 0);
	}
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
