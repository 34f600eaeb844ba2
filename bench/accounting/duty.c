/*
 * Usage: duty PERCENT MS [KERNELS]
 *
 * Keeps the GPU busy for so many percent of each MS: with a row of KERNELS (1), each of 16 small blocks. When it is
 * made to rest (support/conversation.h), it prints when each kernel ran, by its own looks at %globaltimer: BEGIN,END
 * in ns.
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
static int in_row = 1, kernels;
static int64_t begin; /* of the first one since it rested */

/* A row begins with each period, or at once if late because of the row before. */
static void step(void)
{
	if (kernels == 0)
		begin = bench_now();
	int64_t pause = begin + kernels / in_row * (int64_t)period - bench_now();

	if (pause > 0)
		bench_sleep(pause);
	for (int i = 0; i < in_row && kernels < KERNELS_MAX; i++)
		looks_launch(&looks, kernels++, (uint64_t)(period * percent / 100 / in_row));
	bench_wait(&gpu);
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
	bool is_right = count == 3 || count == 4;

	percent = is_right ? bench_number(arguments[1], "PERCENT") : 0;
	period = is_right ? bench_number(arguments[2], "MS") * NS_PER_MS : 0;
	in_row = count == 4 ? (int)bench_number(arguments[3], "KERNELS") : 1;
	if (percent <= 0 || percent > 100 || period <= 0 || in_row < 1)
		bench_fail("Usage: duty PERCENT MS [KERNELS]");
	conversation_listen();
	bench_open(&gpu);
	looks_open(&looks, &gpu, BLOCKS, KERNELS_MAX);
	looks_launch(&looks, 0, 0);
	bench_wait(&gpu);
	conversation_hold(&(const struct conversation){.step = step, .rest = print_looks}, gpu.sm_count);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
