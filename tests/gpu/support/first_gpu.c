#include "first_gpu.h"

struct gpu_under_test gpu;

int gpu_set_up(void **state)
{
	(void)state;
	gpu_initialise();
	gpu_open(&gpu, 0);
	return 0;
}

void gpu_need_clusters(void)
{
	if (gpu.topology->compute_major < 9)
		gpu_skip("this GPU has no clusters");
}
