/* Memset nodes of graphs: from 64 KiB on they are kernels, and announced (docs/hardware.md). */
#include "context.h"
#include "graph.h"
#include "memory.h"
#include "module.h"

#include <string.h>

#define SMALLEST_KERNEL 65536 /* bytes */

struct fill {
	CUdeviceptr address;
	size_t bytes;
	uint64_t value; /* of a byte */
};

static CUresult fill(const struct launch *launch, const struct schedule *schedule)
{
	struct fill what;
	void *memory;

	(void)schedule;
	memcpy(&what, launch->arguments, sizeof what);
	memory = memory_at(what.address, what.bytes);
	if (!memory)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memset(memory, (int)what.value, what.bytes);
	return CUDA_SUCCESS;
}

static struct CUfunc_st by_kernel = {.name = "memset", .model = fill};
static struct CUfunc_st by_other_means = {.name = "memset", .model = fill, .is_unannounced = true};

/* One row of bytes. */
CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)
{
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	const struct fill what = {parameters->dst, parameters->width, parameters->value};

	(void)dependencies;
	(void)count;
	if (parameters->elementSize != 1 || parameters->height != 1 || !context)
		return CUDA_ERROR_NOT_SUPPORTED;
	content.launch = (struct launch){
		.context = context,
		.function = what.bytes >= SMALLEST_KERNEL ? &by_kernel : &by_other_means,
		.grid = {8, 1, 1},
		.block = {512, 1, 1},
	};
	memcpy(content.launch.arguments, &what, sizeof what);
	return graph_add_node(graph, &content, node);
}
