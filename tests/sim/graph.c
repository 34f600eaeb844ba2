#include "graph.h"

#include "faults.h"
#include "hook.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Guards the list of graphs and their nodes, so that a handle can be looked up; never held during a callback. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUgraph live_graphs;
static CUgraphNode destroyed_nodes; /* their handles must never be given again */
static uint64_t last_serial;

/* --- nodes ------------------------------------------------------------------------------------------------ */

CUresult graph_add_node(CUgraph graph, const struct CUgraphNode_st *content, CUgraphNode *node)
{
	CUgraphNode new = malloc(sizeof *new);

	if (!new) {
		free(content->inside);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*new = *content;
	new->next = NULL;
	pthread_mutex_lock(&lock);
	new->serial = ++last_serial;
	*graph->end = new;
	graph->end = &new->next;
	pthread_mutex_unlock(&lock);
	if (node)
		*node = new;
	return CUDA_SUCCESS;
}

CUresult graph_add_kernel(CUgraph graph, const struct launch *launch, CUgraphNode *node)
{
	const struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .launch = *launch};

	return graph_add_node(graph, &content, node);
}

static bool contains(CUgraphNode first, CUgraphNode node)
{
	bool found = false;

	for (CUgraphNode other = first; other && !found; other = other->next)
		found = other == node;
	return found;
}

uint64_t graph_serial(CUgraphNode node)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	if (contains(destroyed_nodes, node))
		fatal("the handle of a node that was destroyed");
	for (CUgraph graph = live_graphs; graph && !found; graph = graph->next_live)
		found = contains(graph->first, node);
	uint64_t serial = found ? node->serial : 0;

	pthread_mutex_unlock(&lock);
	return serial;
}

void graph_visit_launches(CUgraph graph, bool runs, graph_visitor *visit, void *data)
{
	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (node->launch.function)
			visit(node, runs, data);
		for (unsigned int i = 0; i < node->inside_count; i++)
			graph_visit_launches(node->inside[i], runs && i == node->chosen, visit, data);
	}
}

uint64_t graph_allocated(CUgraph graph)
{
	uint64_t bytes = 0;

	for (CUgraphNode node = graph->first; node; node = node->next) {
		bytes += node->allocated;
		for (unsigned int i = 0; i < node->inside_count; i++)
			bytes += graph_allocated(node->inside[i]);
	}
	return bytes;
}

bool graph_has_conditional(CUgraph graph)
{
	bool found = false;

	for (CUgraphNode node = graph->first; node && !found; node = node->next) {
		found = node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
		for (unsigned int i = 0; i < node->inside_count && !found; i++)
			found = graph_has_conditional(node->inside[i]);
	}
	return found;
}

CUresult graph_read_parameters(struct launch *launch, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	const CUlaunchConfig config = {
		.gridDimX = parameters->gridDimX, .gridDimY = parameters->gridDimY, .gridDimZ = parameters->gridDimZ,
		.blockDimX = parameters->blockDimX, .blockDimY = parameters->blockDimY, .blockDimZ = parameters->blockDimZ,
		.sharedMemBytes = parameters->sharedMemBytes,
	};
	CUresult result = launch_configure(launch, &config, parameters->func);

	if (result == CUDA_SUCCESS)
		result = launch_copy_arguments(launch, parameters->kernelParams);
	return result;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	struct launch launch;
	CUresult result = graph_read_parameters(&launch, parameters);

	return result == CUDA_SUCCESS ? graph_add_kernel(graph, &launch, node) : result;
}

/* Gives a child graph node its own copy of the graph. */
static CUresult clone_into(struct CUgraphNode_st *content, CUgraph child)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	content->inside_count = 1;
	content->inside = calloc(1, sizeof(CUgraph));
	if (content->inside)
		result = cuGraphClone(content->inside, child);
	if (result != CUDA_SUCCESS)
		free(content->inside);
	return result;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUgraph child)
{
	struct CUgraphNode_st content = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	CUresult result = clone_into(&content, child);

	return result == CUDA_SUCCESS ? graph_add_node(graph, &content, node) : result;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
	if (node->type != CU_GRAPH_NODE_TYPE_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = node->inside[0];
	return CUDA_SUCCESS;
}

/* Only one attribute is kept. */
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int attribute, CUlaunchAttributeValue *value)
{
	memset(value, 0, sizeof *value);
	if (attribute == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
		value->deviceUpdatableKernelNode.deviceUpdatable = node->is_device_updatable;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int attribute, const CUlaunchAttributeValue *value)
{
	if (attribute != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
		return CUDA_ERROR_NOT_SUPPORTED;
	node->is_device_updatable = value->deviceUpdatableKernelNode.deviceUpdatable;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
	*type = node->type;
	return CUDA_SUCCESS;
}

/* --- graphs ------------------------------------------------------------------------------------------------ */

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraph new = calloc(1, sizeof *new);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new->end = &new->first;
	pthread_mutex_lock(&lock);
	new->serial = ++last_serial;
	new->next_live = live_graphs;
	live_graphs = new;
	pthread_mutex_unlock(&lock);
	*graph = new;
	return CUDA_SUCCESS;
}

/* Removes it; whether it was in the list of existing graphs. */
static bool remove_from_list(CUgraph graph)
{
	pthread_mutex_lock(&lock);
	CUgraph *link = &live_graphs;

	while (*link && *link != graph)
		link = &(*link)->next_live;
	bool found = *link != NULL;

	if (found)
		*link = graph->next_live;
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult graph_destroy(CUgraph graph)
{
	if (!remove_from_list(graph))
		return CUDA_ERROR_INVALID_VALUE;
	while (graph->first) {
		CUgraphNode node = graph->first;

		graph->first = node->next;
		for (unsigned int i = 0; i < node->inside_count; i++)
			graph_destroy(node->inside[i]);
		free(node->inside);
		free(node);
	}
	free(graph);
	return CUDA_SUCCESS;
}

/* Removes it from its graph; false if no graph has it. */
static bool remove_node(CUgraphNode node)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (CUgraph graph = live_graphs; graph && !found; graph = graph->next_live) {
		CUgraphNode *link = &graph->first;

		while (*link && *link != node)
			link = &(*link)->next;
		found = *link != NULL;
		if (found)
			*link = node->next;
		if (found && graph->end == &node->next)
			graph->end = link;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

HOOKED_1(cuGraphDestroyNode, CUgraphNode, node)
{
	if (!remove_node(node))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < node->inside_count; i++) {
		while (node->inside[i]->first)
			do_cuGraphDestroyNode(node->inside[i]->first);
		graph_destroy(node->inside[i]);
	}
	free(node->inside);
	pthread_mutex_lock(&lock);
	node->next = destroyed_nodes;
	destroyed_nodes = node;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

HOOKED_1(cuGraphDestroy, CUgraph, graph)
{
	return graph_destroy(graph);
}

CUresult cuGraphClone(CUgraph *clone, CUgraph original)
{
	CUresult result = cuGraphCreate(clone, 0);

	for (CUgraphNode node = original->first; node && result == CUDA_SUCCESS; node = node->next) {
		struct CUgraphNode_st content = *node;

		if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			result = CUDA_ERROR_NOT_SUPPORTED;
		else if (node->inside_count > 0)
			result = clone_into(&content, node->inside[0]);
		if (result == CUDA_SUCCESS)
			result = graph_add_node(*clone, &content, NULL);
	}
	return result;
}

/* With nodes == NULL it only returns the number. */
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	size_t present = 0;

	for (CUgraphNode node = graph->first; node; node = node->next, present++) {
		if (nodes && present < *count)
			nodes[present] = node;
	}
	if (!nodes || present < *count)
		*count = present;
	return CUDA_SUCCESS;
}
