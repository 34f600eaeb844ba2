/*
 * Usage: launches COUNT
 *
 * Launches COUNT kernels inside a partition that does not change. The experiment `callback` counts their instructions.
 */
#include "bench.h"
#include "gpu/kernels.h"

#include <stdlib.h>

int main(int count, char **arguments)
{
	long launches = count == 2 ? (long)bench_number(arguments[1], "COUNT") : 1;
	struct bench_gpu gpu;

	bench_open(&gpu);
	const struct bench_launch launch = {bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};

	for (long i = 0; i < launches; i++)
		bench_start(&gpu, &launch);
	bench_wait(&gpu);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
