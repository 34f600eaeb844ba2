/*
 * Usage: first_launch
 *
 * Makes a context, and prints how many µs it then took until its first kernel had ended, with loading its module.
 */
#include "bench.h"
#include "gpu/kernels.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	struct bench_gpu gpu;

	bench_open(&gpu);
	int64_t begin = bench_now();
	const struct bench_launch launch = {
		.function = bench_kernel(kernels_ptx, "nothing"),
		.grid_x = 1,
		.grid_y = 1,
		.block_x = 1,
		.block_y = 1,
	};

	bench_start(&gpu, &launch);
	bench_wait(&gpu);
	printf("%.1f\n", (double)(bench_now() - begin) / 1e3);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
