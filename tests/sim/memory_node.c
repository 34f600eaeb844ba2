/* Nodes of graphs that fill and copy. From some size on they are kernels, which are announced (hardware.md). */
#include "context.h"
#include "graph.h"
#include "memory.h"
#include "module.h"

#include <string.h>

/* Bytes. Not measured exactly: a fill of 4 KiB is no kernel, one of 16 KiB is; a copy of 4 bytes is one. */
#define SMALLEST_FILL 16384

/* Adds a node whose content takes the place of a kernel's arguments; `model` reads it. */
static CUresult add(CUgraphNode *node, CUgraph graph, int type, CUcontext context, CUfunction function,
                    const void *arguments, size_t bytes)
{
	struct CUgraphNode_st content = {
		.type = type,
		.launch = {.context = context, .function = function, .grid = {8, 1, 1}, .block = {512, 1, 1}},
	};

	memcpy(content.launch.arguments, arguments, bytes);
	return graph_add_node(graph, &content, node);
}

/* --- fills ------------------------------------------------------------------------------------------------ */

struct fill {
	CUdeviceptr address;
	size_t bytes;
	uint64_t value; /* of a byte */
};

static CUresult fill(const struct launch *launch, const struct schedule *schedule)
{
	struct fill what;
	void *memory;

	memcpy(&what, launch->arguments, sizeof what);
	memory = memory_at(what.address, what.bytes);
	if (!memory)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memset(memory, (int)what.value, what.bytes);
	return CUDA_SUCCESS;
}

static struct CUfunc_st fill_by_kernel = {.name = "memset", .model = fill};
static struct CUfunc_st fill_by_other_means = {.name = "memset", .model = fill, .is_unannounced = true};

/* One row of bytes. */
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)
{
	const struct fill what = {parameters->dst, parameters->width, parameters->value};

	if (parameters->elementSize != 1 || parameters->height != 1 || !context)
		return CUDA_ERROR_NOT_SUPPORTED;
	return add(node, graph, CU_GRAPH_NODE_TYPE_MEMSET, context,
	           what.bytes >= SMALLEST_FILL ? &fill_by_kernel : &fill_by_other_means, &what, sizeof what);
}

/* --- copies ----------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(CUDA_MEMCPY3D) <= LAUNCH_ARGUMENTS_MAX, "a copy takes the place of arguments");

static char *row_at(int type, const void *host, CUdeviceptr device, size_t offset, size_t width)
{
	return type == CU_MEMORYTYPE_HOST ? (char *)(uintptr_t)host + offset : memory_at(device + offset, width);
}

static CUresult copy(const struct launch *launch, const struct schedule *schedule)
{
	CUresult result = CUDA_SUCCESS;
	CUDA_MEMCPY3D what;

	memcpy(&what, launch->arguments, sizeof what);
	for (size_t row = 0; row < what.Height && result == CUDA_SUCCESS; row++) {
		const char *from = row_at(what.srcMemoryType, what.srcHost, what.srcDevice, row * what.srcPitch, what.WidthInBytes);
		char *to = row_at(what.dstMemoryType, what.dstHost, what.dstDevice, row * what.dstPitch, what.WidthInBytes);

		if (from && to)
			memmove(to, from, what.WidthInBytes);
		else
			result = CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	return result;
}

static struct CUfunc_st copy_by_kernel = {.name = "memcpy", .model = copy};
static struct CUfunc_st copy_by_other_means = {.name = "memcpy", .model = copy, .is_unannounced = true};

static bool is_simple_end(int type, size_t x, size_t y, size_t z)
{
	return (type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE) && x == 0 && y == 0 && z == 0;
}

/* Copies rows from the start of host or device memory. */
CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMCPY3D *parameters, CUcontext context)
{
	bool is_kernel = parameters->srcMemoryType == CU_MEMORYTYPE_DEVICE && parameters->dstMemoryType == CU_MEMORYTYPE_DEVICE;

	if (!is_simple_end(parameters->srcMemoryType, parameters->srcXInBytes, parameters->srcY, parameters->srcZ) ||
	    !is_simple_end(parameters->dstMemoryType, parameters->dstXInBytes, parameters->dstY, parameters->dstZ) ||
	    parameters->Depth != 1 || !context)
		return CUDA_ERROR_NOT_SUPPORTED;
	return add(node, graph, CU_GRAPH_NODE_TYPE_MEMCPY, context, is_kernel ? &copy_by_kernel : &copy_by_other_means, parameters,
	           sizeof *parameters);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *parameters)
{
	if (node->type != CU_GRAPH_NODE_TYPE_MEMCPY)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(parameters, node->launch.arguments, sizeof *parameters);
	return CUDA_SUCCESS;
}
