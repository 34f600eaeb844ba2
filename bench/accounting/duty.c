/*
 * Usage: duty PERCENT MS
 *
 * Keeps the GPU busy for so many percent of each MS: with one kernel of 16 small blocks. When it is made to rest
 * (support/conversation.h), it prints when each kernel ran, by its own looks at %globaltimer: BEGIN,END in ns.
 */
#include "bench.h"
#include "conversation.h"
#include "last_kernel.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 16
#define KERNELS_MAX 10000
#define NS_PER_MS 1e6

static struct bench_gpu gpu;
static CUfunction last;
static CUdeviceptr looks;
static double percent, period; /* in ns */
static int count;
static int64_t begin; /* of the first kernel since it rested */

struct span {
	uint64_t begin, end;
};

static void run(int number, uint64_t ns)
{
	CUdeviceptr at = looks + (size_t)number * BLOCKS * sizeof(struct span);
	void *arguments[] = {&at, &ns};

	bench_start(&gpu, &(const struct bench_launch){last, BLOCKS, 1, 32, 1, 0, arguments});
	bench_wait(&gpu);
}

/* A kernel begins with each period; one that would begin late because of the one before begins at once. */
static void step(void)
{
	if (count == 0)
		begin = bench_now();
	int64_t pause = begin + count * (int64_t)period - bench_now();

	if (pause > 0)
		bench_sleep(pause);
	if (count < KERNELS_MAX)
		run(count++, (uint64_t)(period * percent / 100));
}

static void print_spans(void)
{
	size_t bytes = (size_t)count * BLOCKS * sizeof(struct span);
	struct span *spans = malloc(bytes + 1);

	if (!spans)
		bench_fail("no memory");
	if (count > 0)
		bench_check(cuMemcpyDtoH_v2(spans, looks, bytes));
	for (int i = 0; i < count * BLOCKS; i += BLOCKS) {
		struct span whole = spans[i];

		for (int block = 1; block < BLOCKS; block++) {
			if (spans[i + block].begin < whole.begin)
				whole.begin = spans[i + block].begin;
			if (spans[i + block].end > whole.end)
				whole.end = spans[i + block].end;
		}
		printf("%llu,%llu\n", (unsigned long long)whole.begin, (unsigned long long)whole.end);
	}
	free(spans);
	count = 0;
}

int main(int argument_count, char **arguments)
{
	percent = argument_count == 3 ? bench_number(arguments[1], "PERCENT") : 0;
	period = argument_count == 3 ? bench_number(arguments[2], "MS") * NS_PER_MS : 0;

	if (percent <= 0 || percent > 100 || period <= 0)
		bench_fail("Usage: duty PERCENT MS");
	conversation_listen();
	bench_open(&gpu);
	last = bench_kernel(last_ptx, "last");
	looks = bench_memory((size_t)KERNELS_MAX * BLOCKS * sizeof(struct span));
	run(0, 0);
	conversation_hold(&(const struct conversation){.step = step, .rest = print_spans}, gpu.sm_count);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
