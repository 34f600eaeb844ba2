#include "kinds.h"

#include "base/pointer_map.h"
#include "driver/functions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct instance {
	CUgraphExec exec;
	uint64_t bytes;
	bool was_launched;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_map instances;
static atomic_bool exist;

void graph_allocations_expect(void)
{
	atomic_store_explicit(&exist, true, memory_order_relaxed);
}

bool graph_allocations_exist(void)
{
	return atomic_load_explicit(&exist, memory_order_relaxed);
}

/* --- the nodes of a graph ----------------------------------------------------------------------------------------- */

#define DEPTH 8 /* of graphs in graphs */

static uint64_t bytes_of_graph(CUgraph graph, int depth);

static uint64_t bytes_of_node(CUgraphNode node, int depth)
{
	struct graph_allocation allocation = {.bytes = 0};
	uint64_t bytes = 0;
	CUgraph child;
	int type;

	if (driver.graph_node_get_type(node, &type) != CUDA_SUCCESS)
		type = -1;
	if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
	    driver.graph_allocation_get_parameters(node, &allocation) == CUDA_SUCCESS)
		bytes = allocation.bytes;
	else if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth > 0 && driver.graph_child(node, &child) == CUDA_SUCCESS)
		bytes = bytes_of_graph(child, depth - 1);
	return bytes;
}

static uint64_t bytes_of_graph(CUgraph graph, int depth)
{
	CUgraphNode *nodes = NULL;
	uint64_t bytes = 0;
	size_t count = 0;

	if (driver.graph_get_nodes(graph, NULL, &count) == CUDA_SUCCESS && count > 0)
		nodes = calloc(count, sizeof(CUgraphNode));
	if (nodes && driver.graph_get_nodes(graph, nodes, &count) == CUDA_SUCCESS) {
		for (size_t i = 0; i < count; i++)
			bytes += bytes_of_node(nodes[i], depth);
	}
	free(nodes);
	return bytes;
}

/* --- instances ---------------------------------------------------------------------------------------------------- */

/* An instance may have the handle of an earlier instance. */
void graph_allocations_instantiated(const struct call *call)
{
	const struct call_instantiate *made = (const struct call_instantiate *)call->arguments;
	bool can_ask = driver.graph_get_nodes && driver.graph_node_get_type && driver.graph_child &&
	               driver.graph_allocation_get_parameters;
	uint64_t bytes = can_ask ? bytes_of_graph(made->graph, DEPTH) : 0;

	pthread_mutex_lock(&lock);
	struct instance *instance = bytes > 0 ? pointer_map_have(&instances, sizeof *instance, *made->exec)
	                                      : pointer_map_find(&instances, sizeof *instance, *made->exec);

	if (instance) {
		instance->bytes = bytes;
		instance->was_launched = false;
	}
	pthread_mutex_unlock(&lock);
}

uint64_t graph_allocations_of(CUgraphExec exec, bool *was_launched)
{
	pthread_mutex_lock(&lock);
	const struct instance *instance = pointer_map_find(&instances, sizeof *instance, exec);
	uint64_t bytes = instance ? instance->bytes : 0;

	*was_launched = instance && instance->was_launched;
	pthread_mutex_unlock(&lock);
	return bytes;
}

void graph_allocations_launched(CUgraphExec exec)
{
	pthread_mutex_lock(&lock);
	struct instance *instance = pointer_map_find(&instances, sizeof *instance, exec);

	if (instance)
		instance->was_launched = true;
	pthread_mutex_unlock(&lock);
}

void graph_allocations_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
	pointer_map_forget(&instances);
}
