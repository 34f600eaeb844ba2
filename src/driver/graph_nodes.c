#include "graph_instances.h"

#include "base/table.h"
#include "functions.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- bodies of conditional nodes ---------------------------------------------------------------------------------- */

struct conditional {
	struct table_entry node_entry;
	struct table_entry graph_entry;
	CUgraphNode node;
	CUgraph graph; /* of the node */
	unsigned int count;
	CUgraph bodies[];
};

/* Each node is in both tables. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table by_node;
static struct table by_graph;

static struct conditional *find_node(CUgraphNode node)
{
	return TABLE_CONTENT(table_find(&by_node, node), struct conditional, node_entry);
}

static struct conditional *find_graph(CUgraph graph)
{
	return TABLE_CONTENT(table_find(&by_graph, graph), struct conditional, graph_entry);
}

static void forget_graph(CUgraph graph);

/* Also the nodes in the bodies. */
static void forget_conditional(struct conditional *conditional)
{
	table_remove(&by_node, &conditional->node_entry);
	table_remove(&by_graph, &conditional->graph_entry);
	for (unsigned int i = 0; i < conditional->count; i++)
		forget_graph(conditional->bodies[i]);
	free(conditional);
}

static void forget_graph(CUgraph graph)
{
	for (struct conditional *in_it = find_graph(graph); in_it; in_it = find_graph(graph))
		forget_conditional(in_it);
}

void graph_bodies_forget_node(CUgraphNode node)
{
	pthread_mutex_lock(&lock);
	struct conditional *known = find_node(node);

	if (known)
		forget_conditional(known);
	pthread_mutex_unlock(&lock);
}

void graph_bodies_forget_graph(CUgraph graph)
{
	pthread_mutex_lock(&lock);
	forget_graph(graph);
	pthread_mutex_unlock(&lock);
}

void graph_bodies_remember(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned int count)
{
	struct conditional *new = malloc(sizeof *new + count * sizeof *bodies);

	/* An older node with the same handle was destroyed, unannounced. */
	graph_bodies_forget_node(node);
	if (!new)
		return;
	*new = (struct conditional){.node = node, .graph = graph, .count = count};
	memcpy(new->bodies, bodies, count * sizeof *bodies);
	pthread_mutex_lock(&lock);
	table_add(&by_node, &new->node_entry, node);
	table_add(&by_graph, &new->graph_entry, graph);
	pthread_mutex_unlock(&lock);
}

static CUgraph body_of(CUgraphNode node, unsigned int number)
{
	CUgraph body = NULL;

	pthread_mutex_lock(&lock);
	const struct conditional *known = find_node(node);

	if (known && number < known->count)
		body = known->bodies[number];
	pthread_mutex_unlock(&lock);
	return body;
}

/* A thread of the parent may have been in the middle of changing the lists. */
void graph_bodies_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(&by_node, 0, sizeof by_node);
	memset(&by_graph, 0, sizeof by_graph);
}

/* --- visiting ---------------------------------------------------------------------------------------------------- */

static bool visit_graph(CUgraph graph, graph_nodes_visitor *visit, void *data)
{
	size_t count = 0;
	bool done = driver.graph_get_nodes(graph, NULL, &count) == CUDA_SUCCESS;
	CUgraphNode *list = count > 0 ? malloc(count * sizeof(CUgraphNode)) : NULL;

	if (count > 0)
		done = list && driver.graph_get_nodes(graph, list, &count) == CUDA_SUCCESS;
	for (size_t i = 0; list && i < count; i++)
		done = graph_nodes_visit(list[i], visit, data) && done;
	free(list);
	return done;
}

static bool visit_child(CUgraphNode node, graph_nodes_visitor *visit, void *data)
{
	CUgraph child;

	return driver.graph_child(node, &child) == CUDA_SUCCESS && visit_graph(child, visit, data);
}

static bool visit_bodies(CUgraphNode node, graph_nodes_visitor *visit, void *data)
{
	bool done = true;
	unsigned int number = 0;

	for (CUgraph body = body_of(node, number); body; body = body_of(node, ++number))
		done = visit_graph(body, visit, data) && done;
	return done;
}

bool graph_nodes_visit(CUgraphNode node, graph_nodes_visitor *visit, void *data)
{
	bool done = true;
	int type;

	if (driver.graph_node_get_type(node, &type) != CUDA_SUCCESS)
		return false;
	if (type == CU_GRAPH_NODE_TYPE_GRAPH)
		done = visit_child(node, visit, data);
	else if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		done = visit_bodies(node, visit, data);
	return visit(node, type, data) && done;
}

/* --- which nodes can be kernels ----------------------------------------------------------------------------------- */

static bool is_updated_by_kernels(CUgraphNode node)
{
	CUlaunchAttributeValue value = {.deviceUpdatableKernelNode = {.deviceUpdatable = 0}};

	return driver.graph_kernel_get_attribute &&
	       driver.graph_kernel_get_attribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) ==
	               CUDA_SUCCESS &&
	       value.deviceUpdatableKernelNode.deviceUpdatable;
}

static bool is_with_host(CUgraphNode copy)
{
	CUDA_MEMCPY3D parameters = {.srcMemoryType = 0};

	return driver.graph_copy_get_parameters &&
	       driver.graph_copy_get_parameters(copy, &parameters) == CUDA_SUCCESS &&
	       (parameters.srcMemoryType == CU_MEMORYTYPE_HOST || parameters.dstMemoryType == CU_MEMORYTYPE_HOST);
}

bool graph_nodes_can_be_kernel(CUgraphNode node)
{
	int type;

	return driver.graph_node_get_type(node, &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_MEMCPY ||
	       !is_with_host(node);
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

static bool add_node(struct graph_nodes *nodes, CUgraphNode node)
{
	if (nodes->count == nodes->room) {
		size_t room = nodes->room ? 2 * nodes->room : 16;
		CUgraphNode *list = realloc(nodes->list, room * sizeof(CUgraphNode));

		if (!list)
			return false;
		nodes->list = list;
		nodes->room = room;
	}
	nodes->list[nodes->count++] = node;
	return true;
}

static bool collect(CUgraphNode node, int type, void *data)
{
	struct graph_nodes *nodes = data;
	bool done = true;

	nodes->conditionals += type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
	if ((type == CU_GRAPH_NODE_TYPE_CONDITIONAL && !body_of(node, 0)) ||
	    (type == CU_GRAPH_NODE_TYPE_KERNEL && is_updated_by_kernels(node)))
		nodes->out_of_reach++;
	else if (type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
	         type == CU_GRAPH_NODE_TYPE_MEMSET)
		done = add_node(nodes, node);
	return done;
}

bool graph_nodes_collect(struct graph_nodes *nodes, CUgraph graph)
{
	return visit_graph(graph, collect, nodes);
}

void graph_nodes_free(struct graph_nodes *nodes)
{
	free(nodes->list);
	*nodes = (struct graph_nodes){.list = NULL};
}

bool graph_nodes_run_once(const struct graph_nodes *nodes)
{
	return nodes->conditionals == 0 && nodes->out_of_reach == 0;
}

void graph_nodes_lose(struct graph_nodes *nodes, CUgraphNode node)
{
	size_t place = 0;

	while (place < nodes->count && nodes->list[place] != node)
		place++;
	if (place < nodes->count) {
		nodes->list[place] = nodes->list[--nodes->count];
		nodes->out_of_reach += graph_nodes_can_be_kernel(node);
	}
}
