/*
 * Usage: duty PERCENT MS
 *
 * Keeps the GPU busy for so many percent of each MS: with one kernel of 16 small blocks. Prints "ready" when it has begun, and at
 * its end (SIGTERM) when each kernel ran, by its own looks at %globaltimer: BEGIN,END in ns.
 */
#include "bench.h"
#include "last_kernel.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 16
#define KERNELS_MAX 10000
#define NS_PER_MS 1e6

static struct bench_gpu gpu;
static CUfunction last;
static CUdeviceptr looks;
static volatile sig_atomic_t is_ending;

struct span {
	uint64_t begin, end;
};

static void on_signal(int number)
{
	(void)number;
	is_ending = 1;
}

static void run(int number, uint64_t ns)
{
	CUdeviceptr at = looks + (size_t)number * BLOCKS * sizeof(struct span);
	void *arguments[] = {&at, &ns};

	bench_start(&gpu, &(const struct bench_launch){last, BLOCKS, 1, 32, 1, 0, arguments});
	bench_wait(&gpu);
}

/* A kernel begins with each period; one that would begin late because of the one before begins at once. */
static int run_all(uint64_t busy_ns, int64_t period)
{
	int64_t begin = bench_now();
	int count = 0;

	for (; !is_ending && count < KERNELS_MAX; count++) {
		int64_t pause = begin + count * period - bench_now();

		if (pause > 0)
			bench_sleep(pause);
		run(count, busy_ns);
	}
	return count;
}

static void print_spans(int count)
{
	size_t bytes = (size_t)count * BLOCKS * sizeof(struct span);
	struct span *spans = malloc(bytes + 1);

	if (!spans)
		bench_fail("no memory");
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
}

int main(int count, char **arguments)
{
	double percent = count == 3 ? bench_number(arguments[1], "PERCENT") : 0;
	double period = count == 3 ? bench_number(arguments[2], "MS") * NS_PER_MS : 0;

	if (percent <= 0 || percent > 100 || period <= 0)
		bench_fail("Usage: duty PERCENT MS");
	signal(SIGTERM, on_signal);
	bench_open(&gpu);
	last = bench_kernel(last_ptx, "last");
	looks = bench_memory((size_t)KERNELS_MAX * BLOCKS * sizeof(struct span));
	run(0, 0);
	puts("ready");
	fflush(stdout);
	print_spans(run_all((uint64_t)(period * percent / 100), (int64_t)period));
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
