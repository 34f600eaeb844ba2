/*
 * Conditional nodes of graphs, as far as IF goes with a condition that no kernel changes.
 *
 * That a body's kernels are announced as others are, and that no handle reaches an instance's, is a guess.
 */
#include "graph.h"

/* The handle is the value that each launch starts with. */
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context,
                                        unsigned int value, unsigned int flags)
{
	(void)graph;
	if (!context || flags != CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_NOT_SUPPORTED;
	*handle = value;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, const void *edges,
                           size_t count, CUgraphNodeParams *parameters)
{
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUDA_CONDITIONAL_NODE_PARAMS *conditional = &parameters->conditional;

	(void)dependencies;
	(void)edges;
	(void)count;
	if (parameters->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || conditional->type != CU_GRAPH_COND_TYPE_IF ||
	    conditional->size != 1 || conditional->handle == 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = cuGraphCreate(&content.child, 0);

	if (result != CUDA_SUCCESS)
		return result;
	content.child->is_body = true;
	result = graph_add_node(graph, &content, node);
	conditional->phGraph_out = &(*node)->child;
	return result;
}
