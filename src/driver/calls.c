#include "calls.h"

#include "base/extremes.h"
#include "gpus.h"

/* Arguments of calls that launch. */
struct list_arguments {
	CUfunction function;
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int dynamic_bytes;
	CUstream stream;
};

struct devices_arguments {
	const CUDA_LAUNCH_PARAMS *list;
	unsigned int count;
	unsigned int flags;
};

struct grid_arguments {
	CUfunction function;
	int width;
	int height;
	CUstream stream;
};

struct config_arguments {
	const CUlaunchConfig *config;
	CUfunction function;
};

struct graph_arguments {
	CUgraphExec exec;
	CUstream stream;
};

struct instantiate_arguments {
	struct call_instantiate made;
	union {
		uint64_t flags;
		const uint64_t *parameters; /* the flags come first */
	};
};

/* --- which calls -------------------------------------------------------------------------------------------------- */

#define KINDS(name, number, kinds) [number] = (kinds),
const uint32_t calls_kinds[CALLS_MAX] = {CALLS(KINDS)};

CALLS_ARE(is_cooperative, CALLS_COOPERATIVE)
CALLS_ARE(has_config, CALLS_BY_CONFIG)
CALLS_ARE(has_grid, CALLS_BY_GRID)

/* --- the request of a call ---------------------------------------------------------------------------------------- */

unsigned int calls_cluster_of(const CUlaunchConfig *config)
{
	unsigned int blocks = 1;

	for (unsigned int i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttributeValue *value = &config->attrs[i].value;

		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			blocks = value->clusterDim.x * value->clusterDim.y * value->clusterDim.z;
	}
	return blocks > 0 ? blocks : 1;
}

/* A list longer than the greatest number of GPUs is not read: the driver refuses the call. */
unsigned int calls_launch_count(const struct call *call)
{
	const struct devices_arguments *devices = (const struct devices_arguments *)call->arguments;
	unsigned int count = 1;

	if (calls_launch_on_devices(call->id))
		count = devices->list && devices->count <= GPUS_MAX ? devices->count : 0;
	return count;
}

static struct list_arguments arguments_of_device(const struct devices_arguments *devices, unsigned int number)
{
	const CUDA_LAUNCH_PARAMS *launch = &devices->list[number];

	return (struct list_arguments){
		.function = launch->function,
		.grid = {launch->gridDimX, launch->gridDimY, launch->gridDimZ},
		.block = {launch->blockDimX, launch->blockDimY, launch->blockDimZ},
		.dynamic_bytes = launch->sharedMemBytes,
		.stream = launch->hStream,
	};
}

static struct launch_request request_of_list(const struct list_arguments *arguments)
{
	const unsigned int *grid = arguments->grid, *block = arguments->block;

	return (struct launch_request){
		.function = arguments->function,
		.stream = arguments->stream,
		.shape = {.cluster = 1,
	                  .cooperative = grid[0] * grid[1] * grid[2],
	                  .threads = block[0] * block[1] * block[2],
	                  .shared_bytes = arguments->dynamic_bytes},
	};
}

static struct launch_request request_of_config(const struct config_arguments *arguments)
{
	const CUlaunchConfig *config = arguments->config;
	struct launch_request request = {
		.function = arguments->function,
		.stream = config->hStream,
		.shape = {.cluster = calls_cluster_of(config),
	                  .threads = config->blockDimX * config->blockDimY * config->blockDimZ,
	                  .shared_bytes = config->sharedMemBytes},
	};

	for (unsigned int i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && config->attrs[i].value.cooperative)
			request.shape.cooperative = config->gridDimX * config->gridDimY * config->gridDimZ;
	}
	return request;
}

/* Perhaps before the launch ahead in the stream has ended. */
static bool begins_early(const struct config_arguments *arguments)
{
	const CUlaunchConfig *config = arguments->config;
	bool is_allowed = false;

	for (unsigned int i = 0; config && i < config->numAttrs; i++)
		is_allowed |= config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
		              config->attrs[i].value.programmaticStreamSerializationAllowed;
	return is_allowed;
}

static struct launch_request request_of_device(const struct devices_arguments *devices, unsigned int number)
{
	const struct list_arguments arguments = arguments_of_device(devices, number);

	return request_of_list(&arguments);
}

bool calls_read_request(const struct call *call, unsigned int number, struct launch_request *request)
{
	const struct config_arguments *by_config = (const struct config_arguments *)call->arguments;

	*request = (struct launch_request){.function = NULL};
	if (calls_launch_on_devices(call->id) && number < calls_launch_count(call))
		*request = request_of_device((const struct devices_arguments *)call->arguments, number);
	else if (!calls_launch_on_devices(call->id) && is_cooperative(call->id))
		*request = request_of_list((const struct list_arguments *)call->arguments);
	else if (has_config(call->id) && by_config->config)
		*request = request_of_config(by_config);
	return request->shape.cluster > 1 || request->shape.cooperative > 0;
}

/* The program's list may be constant. */
static void refuse_on_devices(const struct call *call)
{
	struct devices_arguments *arguments = (struct devices_arguments *)call->arguments;

	call->frame->refused_launch = arguments->list[0];
	call->frame->refused_launch.gridDimX = 0;
	arguments->list = &call->frame->refused_launch;
	arguments->count = 1;
}

static void refuse_by_config(const struct call *call)
{
	struct config_arguments *arguments = (struct config_arguments *)call->arguments;

	call->frame->refused = *arguments->config;
	call->frame->refused.gridDimX = 0;
	arguments->config = &call->frame->refused;
}

void calls_refuse(const struct call *call)
{
	if (calls_launch_on_devices(call->id))
		refuse_on_devices(call);
	else if (is_cooperative(call->id))
		((struct list_arguments *)call->arguments)->grid[0] = 0;
	else
		refuse_by_config(call);
}

const CUgraphNodeParams *calls_node_parameters(const struct call *call)
{
	return call->arguments[call->id == CALL_GRAPH_NODE_ADD ? 4 : 5];
}

/* --- the origin of launches --------------------------------------------------------------------------------------- */

static CUstream stream_of(const struct call *call)
{
	const struct config_arguments *by_config = (const struct config_arguments *)call->arguments;
	CUstream stream = NULL;

	if (has_config(call->id))
		stream = by_config->config ? by_config->config->hStream : NULL;
	else if (!has_grid(call->id))
		stream = ((const struct list_arguments *)call->arguments)->stream;
	else if (call->id == CALL_LAUNCH_GRID_ASYNC)
		stream = ((const struct grid_arguments *)call->arguments)->stream;
	return calls_named_stream(stream, call->id);
}

/* Of several launches, no call names the launch that is being uploaded. The driver refuses NULL. */
static CUstream stream_on_devices(const struct call *call)
{
	const struct devices_arguments *arguments = (const struct devices_arguments *)call->arguments;

	return calls_launch_count(call) == 1 ? arguments->list[0].hStream : NULL;
}

static CUstream stream_of_launches(const struct call *call)
{
	return calls_launch_on_devices(call->id) ? stream_on_devices(call) : stream_of(call);
}

uint64_t calls_instantiate_flags(const struct call *call)
{
	const struct instantiate_arguments *arguments = (const struct instantiate_arguments *)call->arguments;
	bool has_parameters = call->id == CALL_GRAPH_INSTANTIATE_WITH_PARAMS ||
	                      call->id == CALL_GRAPH_INSTANTIATE_WITH_PARAMS_PER_THREAD;
	uint64_t flags = 0;

	if (call->id == CALL_GRAPH_INSTANTIATE_WITH_FLAGS)
		flags = arguments->flags;
	else if (has_parameters && arguments->parameters)
		flags = *arguments->parameters;
	return flags;
}

CUstream calls_stream_of_graph(const struct call *call)
{
	return calls_named_stream(((const struct graph_arguments *)call->arguments)->stream, call->id);
}

/* Kernels that communicate with further GPUs ask for a domain of their own, as in NCCL from Hopper on. */
static bool waits_for_others(const CUlaunchAttribute *attribute)
{
	return (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute->value.cooperative) ||
	       (attribute->id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN &&
	        attribute->value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
}

static struct launched_work work_of_config(const struct config_arguments *arguments)
{
	const CUlaunchConfig *config = arguments->config;
	struct launched_work work = {.what = NULL};

	if (config)
		work = (struct launched_work){.what = arguments->function,
		                              .grid = {config->gridDimX, config->gridDimY, config->gridDimZ}};
	for (unsigned int i = 0; config && i < config->numAttrs; i++)
		work.waits_for_others |= waits_for_others(&config->attrs[i]);
	return work;
}

static struct launched_work work_of_list(const struct list_arguments *arguments, int id)
{
	const unsigned int *grid = arguments->grid;

	return (struct launched_work){
	    .what = arguments->function, .grid = {grid[0], grid[1], grid[2]}, .waits_for_others = is_cooperative(id)};
}

struct launched_work calls_read_work(const struct call *call)
{
	struct launched_work work;

	if (calls_use_instance(call->id))
		work =
		    (struct launched_work){.what = ((const struct call_exec *)call->arguments)->exec, .is_graph = true};
	else if (calls_launch_on_devices(call->id))
		work = (struct launched_work){.what = NULL, .waits_for_others = true};
	else if (has_config(call->id))
		work = work_of_config((const struct config_arguments *)call->arguments);
	else if (has_grid(call->id))
		work = (struct launched_work){.what = ((const struct grid_arguments *)call->arguments)->function};
	else
		work = work_of_list((const struct list_arguments *)call->arguments, call->id);
	work.stream = work.is_graph ? calls_stream_of_graph(call) : stream_of_launches(call);
	return work;
}

CUstream calls_waiting_stream(const struct call *call)
{
	bool is_of_semaphores = call->id == CALL_WAIT_SEMAPHORES || call->id == CALL_WAIT_SEMAPHORES_PER_THREAD;

	return calls_named_stream((CUstream)call->arguments[is_of_semaphores ? 3 : 0], call->id);
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

/* No launch of the call needs more room than the result. */
static struct qmd_shape shape_on_devices(const struct call *call)
{
	unsigned int count = calls_launch_count(call);
	struct qmd_shape all = {.cluster = 0};
	struct launch_request request;

	for (unsigned int i = 0; i < count; i++) {
		calls_read_request(call, i, &request);
		all.cluster = (unsigned int)max_u64(all.cluster, request.shape.cluster);
		all.cooperative = (unsigned int)max_u64(all.cooperative, request.shape.cooperative);
		all.threads = (unsigned int)max_u64(all.threads, request.shape.threads);
		all.shared_bytes = (unsigned int)max_u64(all.shared_bytes, request.shape.shared_bytes);
	}
	return all;
}

void calls_enter(const struct call *call)
{
	struct frame *frame = call->frame;
	struct launch_request request = {.function = NULL};

	if (calls_launch(call->id)) {
		frame->stream = stream_of_launches(call);
		if (calls_launch_on_devices(call->id))
			request.shape = shape_on_devices(call);
		else if (calls_may_launch_at_once(call->id))
			calls_read_request(call, 0, &request);
		frame->shape = request.shape;
		frame->turn = 0;
		frame->is_noted = false;
		frame->begins_early = has_config(call->id) &&
		                      begins_early((const struct config_arguments *)call->arguments);
	} else if (calls_upload_nodes(call->id)) {
		frame->uploads_nodes = true;
		frame->exec = calls_use_instance(call->id) ? ((const struct call_exec *)call->arguments)->exec : NULL;
	}
}

void calls_leave(const struct call *call)
{
	struct frame *frame = call->frame;

	if (calls_launch(call->id)) {
		frame->stream = NULL;
		frame->shape = (struct qmd_shape){.cluster = 0};
	} else if (calls_upload_nodes(call->id)) {
		frame->uploads_nodes = false;
		frame->exec = NULL;
	}
}
