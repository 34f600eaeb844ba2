/*
 * Usage: duty PERCENT MS
 *
 * Keeps the GPU busy for so many percent of each MS: with one kernel of 16 small blocks. When it is made to rest
 * (support/conversation.h), it prints when each kernel ran, by its own looks at %globaltimer: BEGIN,END in ns.
 */
#include "bench.h"
#include "conversation.h"
#include "looks.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 16
#define KERNELS_MAX 10000
#define NS_PER_MS 1e6

static struct bench_gpu gpu;
static struct looks looks;
static double percent, period; /* in ns */
static int kernels;
static int64_t begin; /* of the first one since it rested */

static void run(uint64_t ns)
{
	looks_launch(&looks, kernels, ns);
	bench_wait(&gpu);
}

/* A kernel begins with each period; one that would begin late because of the one before begins at once. */
static void step(void)
{
	if (kernels == 0)
		begin = bench_now();
	int64_t pause = begin + kernels * (int64_t)period - bench_now();

	if (pause > 0)
		bench_sleep(pause);
	if (kernels < KERNELS_MAX) {
		run((uint64_t)(period * percent / 100));
		kernels++;
	}
}

static void print_looks(void)
{
	static struct look found[KERNELS_MAX];

	looks_read(&looks, kernels, found);
	for (int i = 0; i < kernels; i++)
		printf("%llu,%llu\n", (unsigned long long)found[i].begin, (unsigned long long)found[i].end);
	kernels = 0;
}

int main(int count, char **arguments)
{
	percent = count == 3 ? bench_number(arguments[1], "PERCENT") : 0;
	period = count == 3 ? bench_number(arguments[2], "MS") * NS_PER_MS : 0;

	if (percent <= 0 || percent > 100 || period <= 0)
		bench_fail("Usage: duty PERCENT MS");
	conversation_listen();
	bench_open(&gpu);
	looks_open(&looks, &gpu, BLOCKS, KERNELS_MAX);
	run(0);
	conversation_hold(&(const struct conversation){.step = step, .rest = print_looks}, gpu.sm_count);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
