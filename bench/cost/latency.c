/*
 * Usage: latency SAMPLES [PLACE]
 *
 * How long a launch takes for its caller. Prints SAMPLES lines each of "submit,NS", the call (the mean of 100 calls
 * whose kernels are not waited for); "start,NS", the call until the host sees what the kernel wrote; "finish,NS", the
 * call and the wait for the kernel's end. With a PLACE, the measuring thread stays on one CPU: number PLACE, modulo
 * their count, of those that it may use.
 */
#include "bench.h"
#include "gpu/kernels.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 100
#define WARM_UP 200
#define STREAMS 8 /* as many as connections */
#define PATIENCE_NS 1000000000

static struct bench_gpu gpu;

/* Used in turn, so that differences between streams do not count as differences between mechanisms. */
static CUstream streams[STREAMS];

static void open_streams(void)
{
	streams[0] = gpu.stream;
	for (int i = 1; i < STREAMS; i++)
		streams[i] = bench_stream(&gpu);
}

static void use_stream(int number)
{
	gpu.stream = streams[number % STREAMS];
}

static double finish(const struct bench_launch *launch)
{
	int64_t start = bench_now();

	bench_start(&gpu, launch);
	bench_wait(&gpu);
	return (double)(bench_now() - start);
}

/* `mark` is where the kernel writes the number of its SM. */
static double start(const struct bench_launch *launch, volatile uint32_t *mark)
{
	int64_t start, end;

	*mark = UINT32_MAX;
	start = end = bench_now();
	bench_start(&gpu, launch);
	while (*mark == UINT32_MAX && end - start < PATIENCE_NS)
		end = bench_now();
	if (*mark == UINT32_MAX)
		bench_fail("a kernel did not start within a second");
	end = bench_now();
	bench_wait(&gpu);
	return (double)(end - start);
}

/* Only this thread: the driver's threads may run on all CPUs. */
static void stay_on(unsigned int place)
{
	cpu_set_t usable, one;
	int cpu = -1;

	if (sched_getaffinity(0, sizeof usable, &usable) < 0)
		bench_fail("more CPUs than it knows");
	for (unsigned int left = place % (unsigned int)CPU_COUNT(&usable) + 1; left > 0; left--) {
		do
			cpu++;
		while (!CPU_ISSET(cpu, &usable));
	}
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

int main(int count, char **arguments)
{
	int samples = count == 2 || count == 3 ? (int)bench_number(arguments[1], "SAMPLES") : 0;

	if (samples <= 0)
		bench_fail("Usage: latency SAMPLES [PLACE]");
	bench_open(&gpu);
	if (count == 3)
		stay_on((unsigned int)bench_number(arguments[2], "PLACE"));
	CUdeviceptr address;
	volatile uint32_t *mark = bench_visible(1, &address);
	uint64_t cycles = 0;
	void *arguments_of_where[] = {&address, &cycles};
	struct bench_launch nothing = {bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};
	struct bench_launch where = {bench_kernel(kernels_ptx, "where"), 1, 1, 1, 1, 0, arguments_of_where};

	open_streams();
	for (int i = 0; i < WARM_UP; i++) {
		use_stream(i);
		finish(&nothing);
		finish(&where);
	}
	for (int i = 0; i < samples; i++) {
		use_stream(i);
		printf("submit,%.1f\n", (double)bench_submit(&gpu, &nothing, BATCH) / BATCH);
		printf("start,%.0f\n", start(&where, mark));
		printf("finish,%.0f\n", finish(&nothing));
	}
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
