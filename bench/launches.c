/*
 * Usage: launches COUNT
 *
 * Launches COUNT kernels inside a partition that does not change: what bench/run counts the instructions of.
 */
#include "gpu.h"

#include <stdlib.h>

int main(int count, char **arguments)
{
	long launches = count == 2 ? atol(arguments[1]) : 1;
	struct gpu_under_test gpu;

	gpu_initialise();
	gpu_open(&gpu, 0);
	for (long i = 0; i < launches; i++)
		gpu_run(&gpu);
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
