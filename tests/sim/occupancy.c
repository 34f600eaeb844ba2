#include "context.h"
#include "hook.h"
#include "launch.h"
#include "module.h"
#include "scheduler.h"

#define WARP 32
#define REGISTERS_PER_SM 65536
#define SHARED_RESERVED 1024 /* bytes that the system takes for each block */
#define KIB 1024u

/* The limits of an SM, from the CUDA programming guide's table of compute capabilities. */
struct sm_limits {
	unsigned int compute; /* ten times major, plus minor: this one and those up to the next row */
	unsigned int threads;
	unsigned int blocks;
	unsigned int shared;
};

static const struct sm_limits limits[] = {
	{30, 2048, 16, 48 * KIB}, {50, 2048, 32, 64 * KIB},   {60, 2048, 32, 64 * KIB},
	{70, 2048, 32, 96 * KIB}, {75, 1024, 16, 64 * KIB},   {80, 2048, 32, 164 * KIB},
	{86, 1536, 16, 100 * KIB}, {87, 1536, 16, 164 * KIB}, {89, 1536, 24, 100 * KIB},
	{90, 2048, 32, 228 * KIB}, {120, 1536, 24, 100 * KIB},
};

static const struct sm_limits *limits_of(const struct topology *gpu)
{
	unsigned int compute = gpu->compute_major * 10u + gpu->compute_minor;
	const struct sm_limits *found = &limits[0];

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		if (limits[i].compute <= compute)
			found = &limits[i];
	}
	return found;
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int occupancy_shared_per_block(const struct topology *gpu)
{
	return limits_of(gpu)->shared - SHARED_RESERVED;
}

unsigned int occupancy_blocks(const struct topology *gpu, unsigned int threads, size_t shared_bytes)
{
	const struct sm_limits *sm = limits_of(gpu);
	unsigned int whole_warps = (threads + WARP - 1) / WARP * WARP;
	unsigned int blocks = sm->blocks;

	if (threads == 0 || threads > OCCUPANCY_THREADS_PER_BLOCK || shared_bytes > occupancy_shared_per_block(gpu))
		return 0;
	blocks = least(blocks, sm->threads / whole_warps);
	blocks = least(blocks, REGISTERS_PER_SM / (whole_warps * OCCUPANCY_REGISTERS_PER_THREAD));
	if (shared_bytes > 0)
		blocks = least(blocks, sm->shared / (unsigned int)(shared_bytes + SHARED_RESERVED));
	return blocks;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared_bytes)
{
	if (threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = (int)occupancy_blocks(function->module->family->gpu, (unsigned int)threads, shared_bytes);
	return CUDA_SUCCESS;
}

HOOKED_3(cuOccupancyMaxActiveClusters, int *, clusters, CUfunction, function, const CUlaunchConfig *, config)
{
	struct launch launch;
	struct schedule schedule;
	CUresult result = launch_configure(&launch, config, function);

	if (result != CUDA_SUCCESS)
		return result;
	if (launch_cluster_size(&launch) == 0)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	schedule_prepare(&schedule, &launch, &launch.context->tpcs);
	*clusters = (int)schedule.clusters_at_once;
	return CUDA_SUCCESS;
}

/* The largest size of a block, and the number of such blocks that run at once on the whole GPU. */
HOOKED_6(cuOccupancyMaxPotentialBlockSize, int *, blocks, int *, threads, CUfunction, function, void *, to_shared_bytes, size_t,
         shared_bytes, int, limit)
{
	const struct topology *gpu = function->module->family->gpu;

	*threads = OCCUPANCY_THREADS_PER_BLOCK;
	*blocks = (int)(occupancy_blocks(gpu, OCCUPANCY_THREADS_PER_BLOCK, shared_bytes) * gpu->tpc_count * gpu->sms_per_tpc);
	return CUDA_SUCCESS;
}

HOOKED_3(cuOccupancyMaxPotentialClusterSize, int *, blocks, CUfunction, function, const CUlaunchConfig *, config)
{
	*blocks = function->allows_large_clusters ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
	return CUDA_SUCCESS;
}
