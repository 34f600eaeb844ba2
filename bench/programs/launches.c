/*
 * Usage: launches COUNT [SECONDS [watched]]
 *
 * Launches COUNT kernels, one after the other, inside a partition that does not change; before them a few for so many
 * seconds, in which others come to be seen. `watched`: as while nvtaskset trace records. The experiment `callback`
 * counts their instructions.
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "own_times.h"

#include <stdlib.h>

#define LOOK_EVERY 100 /* launches */

static void launch_alone(const struct bench_gpu *gpu, const struct bench_launch *launch)
{
	bench_start(gpu, launch);
	bench_wait(gpu);
}

/* A watcher looks every now and then. */
static void launch_all(const struct bench_gpu *gpu, const struct bench_launch *launch, long launches, bool is_watched)
{
	for (long i = 0; i < launches; i++) {
		if (is_watched && i % LOOK_EVERY == 0)
			own_times_begin();
		launch_alone(gpu, launch);
	}
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
	launch_all(&gpu, &launch, launches, count > 3);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
