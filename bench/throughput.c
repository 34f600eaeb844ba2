/*
 * Usage: throughput SECONDS
 *
 * Launches one kernel after another and prints how many finished a second. Each kernel fills every SM that it may use
 * for a while, so the rate shows how much of the GPU this program has.
 */
#include "bench.h"
#include "gpu/kernels.h"

#include <stdio.h>
#include <stdlib.h>

/* Two blocks fit an SM of most GPUs at a time. */
#define BLOCKS_PER_SM 4
#define THREADS 1024
#define CYCLES 20000

int main(int count, char **arguments)
{
	int64_t length = count == 2 ? (int64_t)(bench_number(arguments[1], "SECONDS") * 1e9) : 0;
	struct bench_gpu gpu;
	unsigned long launches = 0;

	if (length <= 0)
		bench_fail("Usage: throughput SECONDS");
	bench_open(&gpu);
	unsigned int blocks = gpu.sm_count * BLOCKS_PER_SM;
	CUdeviceptr output = bench_memory(blocks * sizeof(uint32_t));
	uint64_t cycles = CYCLES;
	void *parameters[] = {&output, &cycles};
	const struct bench_launch launch = {bench_kernel(kernels_ptx, "where"), blocks, 1, THREADS, 1, 0, parameters};
	int64_t start = bench_now();

	for (; bench_now() - start < length; launches++) {
		bench_start(&gpu, &launch);
		bench_wait(&gpu);
	}
	printf("%.0f kernels/s\n", (double)launches * 1e9 / (double)(bench_now() - start));
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
