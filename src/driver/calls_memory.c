#include "calls.h"

#include <string.h>

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
		.stream = calls_named_stream(stream, call->id),
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
