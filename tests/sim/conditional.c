/* Nodes of graphs made by cuGraphAddNode: allocations, and conditional nodes with conditions that no kernel changes. Each
 * launch uses the value that the handle was made with. */
#include "faults.h"
#include "graph.h"
#include "hook.h"

#include <stdlib.h>

/* The handle contains the value. */
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context,
                                        unsigned int value, unsigned int flags)
{
	if (!context || flags != CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_NOT_SUPPORTED;
	*handle = (CUgraphConditionalHandle)value + 1;
	return CUDA_SUCCESS;
}

static bool is_size_allowed(int type, unsigned int size)
{
	return size == 1 || (size == 2 && type == CU_GRAPH_COND_TYPE_IF) || (size > 2 && type == CU_GRAPH_COND_TYPE_SWITCH);
}

/* A loop with a true condition would never end. */
static bool is_supported(const CUDA_CONDITIONAL_NODE_PARAMS *parameters)
{
	return parameters->handle != 0 && is_size_allowed(parameters->type, parameters->size) &&
	       (parameters->type != CU_GRAPH_COND_TYPE_WHILE || parameters->handle == 1);
}

static CUresult add_conditional(CUgraphNode *node, CUgraph graph, CUgraphNodeParams *parameters)
{
	CUDA_CONDITIONAL_NODE_PARAMS *conditional = &parameters->conditional;
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .inside_count = conditional->size};
	CUresult result = CUDA_SUCCESS;

	if (parameters->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || !is_supported(conditional))
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Which body is run. */
	content.chosen = (unsigned int)conditional->handle - 1;
	if (conditional->type != CU_GRAPH_COND_TYPE_SWITCH)
		content.chosen = content.chosen == 0;
	content.inside = calloc(conditional->size, sizeof(CUgraph));
	if (!content.inside)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < conditional->size && result == CUDA_SUCCESS; i++)
		result = cuGraphCreate(&content.inside[i], 0);
	if (result == CUDA_SUCCESS)
		result = graph_add_node(graph, &content, node);
	conditional->phGraph_out = content.inside;
	return result;
}

static CUresult add(CUgraphNode *node, CUgraph graph, CUgraphNodeParams *parameters)
{
	const struct CUgraphNode_st allocating = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
	                                          .allocated = parameters->allocation.bytes};

	return parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? graph_add_node(graph, &allocating, node)
	                                                        : add_conditional(node, graph, parameters);
}

HOOKED_5(cuGraphAddNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, dependencies, size_t, count,
         CUgraphNodeParams *, parameters)
{
	return add(node, graph, parameters);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, const void *edges,
                           size_t count, CUgraphNodeParams *parameters)
{
	struct {
		CUgraphNode *node;
		CUgraph graph;
		const CUgraphNode *dependencies;
		const void *edges;
		size_t count;
		CUgraphNodeParams *parameters;
	} arguments = {node, graph, dependencies, edges, count, parameters};
	struct hook_call call;

	if (fault(FAULT_UNHEARD_NODES))
		return add(node, graph, parameters);
	HOOK_ENTER(&call, cuGraphAddNode_v2, &arguments);
	return hook_leave(&call, add(arguments.node, arguments.graph, arguments.parameters));
}
