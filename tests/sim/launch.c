#include "launch.h"

#include "context.h"
#include "descriptor.h"
#include "engine.h"
#include "faults.h"
#include "gpu_time.h"
#include "graph.h"
#include "hook.h"
#include "module.h"
#include "pushbuffer.h"
#include "scheduler.h"
#include "stream.h"

#include <string.h>
#include <time.h>

/* --- shapes ----------------------------------------------------------------------------------------- */

static size_t volume(const struct dimensions *dimensions)
{
	return (size_t)dimensions->x * dimensions->y * dimensions->z;
}

size_t launch_blocks(const struct launch *launch)
{
	return volume(&launch->grid);
}

unsigned int launch_threads(const struct launch *launch)
{
	return (unsigned int)volume(&launch->block);
}

unsigned int launch_cluster_size(const struct launch *launch)
{
	return (unsigned int)volume(&launch->cluster);
}

/* --- checks: what the driver refuses ------------------------------------------------------------------- */

static CUresult check_block(const struct launch *launch)
{
	size_t threads = volume(&launch->block);
	CUresult result = CUDA_SUCCESS;

	if (launch_blocks(launch) == 0 || threads == 0 || threads > OCCUPANCY_THREADS_PER_BLOCK ||
	    launch->shared_bytes > (unsigned int)launch->function->dynamic_shared_limit)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (launch->function->module->family != launch->context->family)
		result = CUDA_ERROR_INVALID_HANDLE;
	else if (occupancy_blocks(launch->context->gpu, launch_threads(launch), launch->shared_bytes) == 0)
		result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	return result;
}

static CUresult check_cluster(const struct launch *launch)
{
	const struct dimensions *grid = &launch->grid, *cluster = &launch->cluster;
	unsigned int size = launch_cluster_size(launch);
	unsigned int limit = launch->function->allows_large_clusters ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
	CUresult result = CUDA_SUCCESS;

	if (size == 0)
		return CUDA_SUCCESS;
	if (launch->context->gpu->compute_major < 9 || grid->x % cluster->x || grid->y % cluster->y || grid->z % cluster->z)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (size > limit)
		result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return result;
}

/* Whether the launch fits on the TPCs where the driver expects it: the whole GPU, or the green context. */
static CUresult check_room(const struct launch *launch)
{
	struct schedule schedule;
	CUresult result = CUDA_SUCCESS;

	schedule_prepare(&schedule, launch, &launch->context->tpcs);
	if (schedule_verdict(&schedule))
		result = launch->cooperative ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return result;
}

static CUresult check(const struct launch *launch)
{
	CUresult result = check_block(launch);

	if (result == CUDA_SUCCESS)
		result = check_cluster(launch);
	if (result == CUDA_SUCCESS)
		result = check_room(launch);
	return result;
}

/* --- from the call's arguments -------------------------------------------------------------------------- */

static void read_attribute(struct launch *launch, const CUlaunchAttribute *attribute)
{
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
		launch->cooperative = attribute->value.cooperative != 0;
	} else if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
		launch->cluster.x = attribute->value.clusterDim.x;
		launch->cluster.y = attribute->value.clusterDim.y;
		launch->cluster.z = attribute->value.clusterDim.z;
	}
}

CUresult launch_configure(struct launch *launch, const CUlaunchConfig *config, CUfunction function)
{
	CUcontext context = stream_context(config->hStream);
	CUresult result = context_result(context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	*launch = (struct launch){
		.context = context, .stream = config->hStream, .function = function,
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ}, .shared_bytes = config->sharedMemBytes,
	};
	for (unsigned int i = 0; i < config->numAttrs; i++)
		read_attribute(launch, &config->attrs[i]);
	return check(launch);
}

CUresult launch_copy_arguments(struct launch *launch, void **parameters)
{
	CUfunction function = launch->function;

	if (!parameters && function->parameter_count > 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < function->parameter_count; i++)
		memcpy(launch->arguments + function->parameters[i].offset, parameters[i], function->parameters[i].bytes);
	return CUDA_SUCCESS;
}

/* --- running ---------------------------------------------------------------------------------------------- */

void launch_upload(const struct launch *launch, struct descriptor *descriptor)
{
	const struct descriptor written = *descriptor;

	if (!launch->function->is_unannounced)
		hook_before_upload(launch->context, launch->function, descriptor->words);
	descriptor_check_change(&written, descriptor, launch->context->gpu);
}

CUresult launch_run(const struct launch *launch, const struct descriptor *descriptor)
{
	struct tpcset enabled = descriptor_enabled(descriptor, launch->context->gpu);
	struct schedule schedule;

	schedule_prepare(&schedule, launch, &enabled);
	const char *verdict = schedule_verdict(&schedule);

	if (verdict)
		fatal("this launch would never finish: %s", verdict);
	CUresult result = context_failure();

	/* The program hears of a failure later. */
	if (result == CUDA_SUCCESS && launch->function->model)
		result = launch->function->model(launch, &schedule);
	if (result == CUDA_SUCCESS)
		release_all(launch->context, descriptor);
	else
		context_fail(result);
	return CUDA_SUCCESS;
}

CUresult launch_by(struct descriptor *descriptor, const struct launch *launch)
{
	descriptor_write(descriptor, launch);
	uint32_t number = release_ask_for_end(launch->context, launch->stream, descriptor);

	if (fault(FAULT_SLOW_LAUNCHES) || fault(FAULT_SLOW_LOADS))
		nanosleep(&(const struct timespec){.tv_nsec = fault(FAULT_SLOW_LOADS) ? 30000000 : 300000}, NULL);
	launch_upload(launch, descriptor);
	engine_wait_for_room(launch->context);
	struct descriptor told = *descriptor;
	struct segment_place place = pushbuffer_write(launch, descriptor, &told);

	if (engine_takes(launch, descriptor, &place))
		return CUDA_SUCCESS;
	descriptor_check_change(descriptor, &told, launch->context->gpu);
	gpu_time_launch();
	CUresult result = launch_run(launch, &told);

	engine_has_run(launch->context);
	if (context_result(launch->context) == CUDA_SUCCESS)
		release_check_end(number);
	return result;
}

CUresult launch_now(const struct launch *launch)
{
	struct descriptor descriptor;

	return launch_by(&descriptor, launch);
}

static CUresult launch_kernel(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
	struct launch launch;
	CUgraph capturing = capture_of(config->hStream);
	CUresult result = extra ? CUDA_ERROR_NOT_SUPPORTED : launch_configure(&launch, config, function);

	if (result == CUDA_SUCCESS)
		result = context_result(launch.context);
	if (result == CUDA_SUCCESS && fault(FAULT_NO_LAUNCHES))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = launch_copy_arguments(&launch, parameters);
	if (result == CUDA_SUCCESS && !capturing)
		hook_check_launch(function->name);
	if (result == CUDA_SUCCESS)
		result = capturing ? graph_add_kernel(capturing, &launch, NULL) : launch_now(&launch);
	return result;
}

/* --- the driver's functions ---------------------------------------------------------------------------- */

/* The arguments as callbacks of domain 6 see them. */
struct list_arguments {
	CUfunction function;
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int shared_bytes;
	CUstream stream;
	void **parameters;
	void **extra;
};

static CUresult launch_by_list(const struct list_arguments *list, bool cooperative)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	const CUlaunchConfig config = {
		.gridDimX = list->grid[0], .gridDimY = list->grid[1], .gridDimZ = list->grid[2], .blockDimX = list->block[0],
		.blockDimY = list->block[1], .blockDimZ = list->block[2], .sharedMemBytes = list->shared_bytes,
		.hStream = list->stream, .attrs = &attribute, .numAttrs = cooperative,
	};

	return launch_kernel(&config, list->function, list->parameters, list->extra);
}

#define LAUNCH_BY_LIST(name, its_parameters, its_extra, is_cooperative)                                                            \
	CUresult name its_parameters                                                                                               \
	{                                                                                                                          \
		struct list_arguments list = {function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ},                           \
		                              sharedBytes, stream, parameters, its_extra};                                         \
		struct hook_call call;                                                                                             \
                                                                                                                                   \
		HOOK_ENTER(&call, name, &list);                                                                                    \
		return hook_leave(&call, launch_by_list(&list, is_cooperative));                                                   \
	}

LAUNCH_BY_LIST(cuLaunchKernel, (CUDA_LAUNCH_PARAMETERS, void **extra), extra, false)
LAUNCH_BY_LIST(cuLaunchKernel_ptsz, (CUDA_LAUNCH_PARAMETERS, void **extra), extra, false)
LAUNCH_BY_LIST(cuLaunchCooperativeKernel, (CUDA_LAUNCH_PARAMETERS), NULL, true)

HOOKED_4(cuLaunchKernelEx, const CUlaunchConfig *, config, CUfunction, function, void **, parameters, void **, extra)
{
	return config ? launch_kernel(config, function, parameters, extra) : CUDA_ERROR_INVALID_VALUE;
}

HOOKED_4(cuLaunchKernelEx_ptsz, const CUlaunchConfig *, config, CUfunction, function, void **, parameters, void **, extra)
{
	return do_cuLaunchKernelEx(config, function, parameters, extra);
}

/* Default streams are refused. */
HOOKED_3(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *, launches, unsigned int, count, unsigned int, flags)
{
	CUresult result = launches && count > 0 && flags < 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++) {
		const CUDA_LAUNCH_PARAMS *one = &launches[i];
		const struct list_arguments list = {one->function,
		                                    {one->gridDimX, one->gridDimY, one->gridDimZ},
		                                    {one->blockDimX, one->blockDimY, one->blockDimZ},
		                                    one->sharedMemBytes,
		                                    one->hStream,
		                                    one->kernelParams,
		                                    NULL};

		result = stream_is_real(one->hStream) ? launch_by_list(&list, true) : CUDA_ERROR_INVALID_HANDLE;
	}
	return result;
}
