/*
 * Usage: launches COUNT [SECONDS]
 *
 * Launches COUNT kernels, one after the other, inside a partition that does not change; before them a few for so many seconds, in
 * which others come to be seen. The experiment `callback` counts their instructions.
 */
#include "bench.h"
#include "gpu/kernels.h"

#include <stdlib.h>

static void launch_alone(const struct bench_gpu *gpu, const struct bench_launch *launch)
{
	bench_start(gpu, launch);
	bench_wait(gpu);
}

int main(int count, char **arguments)
{
	long launches = count > 1 ? (long)bench_number(arguments[1], "COUNT") : 1;
	double before = count > 2 ? bench_number(arguments[2], "SECONDS") : 0;
	struct bench_gpu gpu;

	bench_open(&gpu);
	const struct bench_launch launch = {bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};

	for (int64_t end = bench_now() + (int64_t)(before * 1e9); bench_now() < end; bench_sleep(10000000))
		launch_alone(&gpu, &launch);
	for (long i = 0; i < launches; i++)
		launch_alone(&gpu, &launch);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
