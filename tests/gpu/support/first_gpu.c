#include "first_gpu.h"

struct gpu_under_test gpu;

int gpu_set_up(void **state)
{
	gpu_initialise();
	gpu_open(&gpu, 0);
	return 0;
}

unsigned int gpu_gpc_with(unsigned int tpcs)
{
	struct tpcset gpc = topology_virtual_gpc(gpu.topology, 0);
	unsigned int found = 0;

	while (found < gpu.topology->gpc_limit && tpcset_count(&gpc) < tpcs)
		gpc = topology_virtual_gpc(gpu.topology, ++found);
	return found;
}

struct tpcset gpu_some_of_gpc(unsigned int virtual_gpc, unsigned int count)
{
	return gpu_first_of(topology_virtual_gpc(gpu.topology, virtual_gpc), count);
}

void gpu_assert_inside(struct tpcset set)
{
	gpu_assert_runs_in(&gpu, NULL, set);
}

void gpu_need_clusters(void)
{
	if (gpu.topology->compute_major < 9)
		gpu_skip("this GPU has no clusters");
}
