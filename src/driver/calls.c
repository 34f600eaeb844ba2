#include "calls.h"

#include "base/extremes.h"
#include "gpus.h"

#include <string.h>

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

#define ALLOCATION_TYPE_MANAGED 2 /* CU_MEM_ALLOCATION_TYPE_MANAGED */

/* The type comes first in a pool's properties, or is the third argument. */
static bool is_of_managed_pool(const struct call *call)
{
	const void *place = call->id == CALL_POOL_CREATE ? call->arguments[1] : &call->arguments[2];
	int type = 0;

	if (place)
		memcpy(&type, place, sizeof type);
	return type == ALLOCATION_TYPE_MANAGED;
}

bool calls_use_managed_memory(const struct call *call)
{
	return calls_are(call->id, CALLS_MANAGED) || (calls_are(call->id, CALLS_POOLS) && is_of_managed_pool(call));
}

/* --- what a call asks for ----------------------------------------------------------------------------------------- */

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

/* A list that is longer than there can be GPUs is not read: the driver refuses the call. */
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

static CUstream named(CUstream stream, int id)
{
	CUstream null = calls_are(id, CALLS_PER_THREAD) ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;

	return stream ? stream : null;
}

/* --- memory ---------------------------------------------------------------------------------------------------- */

/* The last argument. */
CUdevice calls_device_of_context(const struct call *call)
{
	size_t at = call->id == CALL_PRIMARY_RETAIN   ? 8
	          : call->id == CALL_CONTEXT_CREATE_2 ? 12
	          : call->id == CALL_CONTEXT_CREATE_3 ? 24
	                                              : 20;
	CUdevice device;

	memcpy(&device, (const char *)call->arguments + at, sizeof device);
	return device;
}

CUdevice calls_device_of_place(const struct call_place *place)
{
	return place && place->where == CALL_PLACE_DEVICE ? place->number : -1;
}

/* CUDA_ARRAY_DESCRIPTOR. */
struct flat_array {
	size_t width, height;
	int format;
	unsigned int channels;
};

enum {
	ARRAY_LAYERED = 0x01, /* CUDA_ARRAY3D_LAYERED: the depth is a number of layers */
	ARRAY_CUBE = 0x04,    /* CUDA_ARRAY3D_CUBEMAP: of faces */
	ARRAY_SPARSE = 0x40,  /* CUDA_ARRAY3D_SPARSE: memory is mapped into the array later */
	ARRAY_DEFERRED = 0x80 /* CUDA_ARRAY3D_DEFERRED_MAPPING: the same */
};

static struct call_array array_of(const struct call *call)
{
	const struct call_create_array *arguments = (const struct call_create_array *)call->arguments;
	struct call_array array = {.width = 0};
	struct flat_array flat;

	if (arguments->array && call->id == CALL_ARRAY_CREATE) {
		memcpy(&flat, arguments->array, sizeof flat);
		array = (struct call_array){flat.width, flat.height, 0, flat.format, flat.channels, 0};
	} else if (arguments->array) {
		array = *arguments->array;
	}
	return array;
}

/* CUarray_format: bits of a channel. Block-compressed and planar formats (0x91 … 0xb5) have up to 32 bits in all. */
static unsigned int bits_of(const struct call_array *array)
{
	unsigned int bits = 32;

	if (array->format == 0x01 || array->format == 0x08) /* of 8 bits */
		bits = 8 * array->channels;
	else if (array->format == 0x02 || array->format == 0x09 || array->format == 0x10) /* of 16 */
		bits = 16 * array->channels;
	else if (array->format == 0x03 || array->format == 0x0a || array->format == 0x20) /* of 32 */
		bits = 32 * array->channels;
	else if (array->format >= 0xc0 && array->format <= 0xcb) /* normalised: 1, 2 or 4 channels of 8 or of 16 bits */
		bits = (8u << (array->format - 0xc0) / 3 % 2) << (array->format - 0xc0) % 3;
	return bits;
}

static size_t half(size_t length)
{
	return length > 1 ? length / 2 : length;
}

/* The driver makes at least one level, and no level behind a level with a single element. */
uint64_t calls_bytes_of_array(const struct call *call)
{
	struct call_array array = array_of(call);
	const struct call_create_array *create = (const struct call_create_array *)call->arguments;
	unsigned int levels = call->id == CALL_MIPMAPS_CREATE ? create->levels : 1;
	bool has_memory = !(array.flags & (ARRAY_SPARSE | ARRAY_DEFERRED));
	bool is_volume = !(array.flags & (ARRAY_LAYERED | ARRAY_CUBE)), is_last = false;
	uint64_t bytes = 0;

	for (unsigned int level = 0; has_memory && !is_last; level++) {
		uint64_t rows = (array.height ? array.height : 1) * (array.depth ? array.depth : 1);

		bytes += array.width * rows * bits_of(&array) / 8;
		is_last = level + 1 >= levels ||
		          (array.width <= 1 && array.height <= 1 && (!is_volume || array.depth <= 1));
		array.width = half(array.width);
		array.height = half(array.height);
		array.depth = is_volume ? half(array.depth) : array.depth;
	}
	return bytes;
}

struct call_alloc_from_pool calls_pool_allocation(const struct call *call)
{
	const struct call_alloc_from_pool *arguments = (const struct call_alloc_from_pool *)call->arguments;
	bool has_pool = call->id == CALL_ALLOC_FROM_POOL || call->id == CALL_ALLOC_FROM_POOL_PER_THREAD;
	CUstream stream = has_pool ? arguments->stream : (CUstream)arguments->pool;

	return (struct call_alloc_from_pool){
		.made = arguments->made,
		.bytes = arguments->bytes,
		.pool = has_pool ? arguments->pool : NULL,
		.stream = named(stream, call->id),
	};
}

#define MORE_THAN_THERE_IS ((size_t)1 << 62)

/* cuMemAlloc, cuMemAllocManaged and cuMemCreate refuse 0 bytes, and arrays have 1, 2 or 4 channels. */
void calls_refuse_memory(const struct call *call)
{
	struct call_array *array = &call->frame->memory.array;

	switch (call->id) {
	case CALL_ALLOC_PITCH:
		((struct call_alloc_pitch *)call->arguments)->width = MORE_THAN_THERE_IS;
		((struct call_alloc_pitch *)call->arguments)->height = 1;
		break;
	case CALL_ALLOC_ASYNC:
	case CALL_ALLOC_ASYNC_PER_THREAD:
	case CALL_ALLOC_FROM_POOL:
	case CALL_ALLOC_FROM_POOL_PER_THREAD:
		((struct call_alloc_from_pool *)call->arguments)->bytes = MORE_THAN_THERE_IS;
		break;
	case CALL_ARRAY_CREATE:
	case CALL_ARRAY_CREATE_3D:
	case CALL_MIPMAPS_CREATE:
		memset(array, 0, sizeof *array);
		((struct call_create_array *)call->arguments)->array = array;
		break;
	case CALL_GRAPH_LAUNCH:
	case CALL_GRAPH_LAUNCH_PER_THREAD:
	case CALL_GRAPH_UPLOAD:
	case CALL_GRAPH_UPLOAD_PER_THREAD:
		((struct call_exec *)call->arguments)->exec = NULL;
		break;
	default:
		((struct call_alloc *)call->arguments)->bytes = 0;
	}
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
	return named(stream, call->id);
}

/* No call says which of several launches is being uploaded. The driver refuses NULL. */
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
	return named(((const struct graph_arguments *)call->arguments)->stream, call->id);
}

/* Kernels that communicate with other GPUs ask for a domain of their own, as in NCCL from compute capability 9.0 on. */
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

	return named((CUstream)call->arguments[is_of_semaphores ? 3 : 0], call->id);
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
