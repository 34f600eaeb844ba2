#include "graph_bodies.h"

#include "base/table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct conditional {
	struct table_entry by_node;
	struct table_entry by_graph;
	struct conditional *next; /* in a list of those that are to be freed */
	CUgraphNode node;
	CUgraph graph; /* that contains the node */
	unsigned int count;
	CUgraph bodies[];
};

/* Each node is in both tables. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table nodes;
static struct table graphs;

static struct conditional *find_node(CUgraphNode node)
{
	return TABLE_CONTENT(table_find(&nodes, node), struct conditional, by_node);
}

static struct conditional *find_graph(CUgraph graph)
{
	return TABLE_CONTENT(table_find(&graphs, graph), struct conditional, by_graph);
}

/* --- forgetting -------------------------------------------------------------------------------------------------- */

/* Moves a node to the list of those that are to be freed. */
static void doom(struct conditional *conditional, struct conditional **doomed)
{
	table_remove(&nodes, &conditional->by_node);
	table_remove(&graphs, &conditional->by_graph);
	conditional->next = *doomed;
	*doomed = conditional;
}

static void doom_graph(CUgraph graph, struct conditional **doomed)
{
	for (struct conditional *in_it = find_graph(graph); in_it; in_it = find_graph(graph))
		doom(in_it, doomed);
}

/* Frees these nodes, and the nodes in their bodies. */
static void free_all(struct conditional *doomed)
{
	while (doomed) {
		struct conditional *gone = doomed;

		doomed = gone->next;
		for (unsigned int i = 0; i < gone->count; i++)
			doom_graph(gone->bodies[i], &doomed);
		free(gone);
	}
}

void graph_bodies_forget_node(CUgraphNode node)
{
	struct conditional *doomed = NULL;

	pthread_mutex_lock(&lock);
	struct conditional *known = find_node(node);

	if (known)
		doom(known, &doomed);
	free_all(doomed);
	pthread_mutex_unlock(&lock);
}

void graph_bodies_forget_graph(CUgraph graph)
{
	struct conditional *doomed = NULL;

	pthread_mutex_lock(&lock);
	doom_graph(graph, &doomed);
	free_all(doomed);
	pthread_mutex_unlock(&lock);
}

/* --- remembering ------------------------------------------------------------------------------------------------- */

void graph_bodies_remember(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned int count)
{
	struct conditional *new = malloc(sizeof *new + count * sizeof *bodies);

	/* An older node with this handle was destroyed without our hearing of it. */
	graph_bodies_forget_node(node);
	if (!new)
		return;
	*new = (struct conditional){.node = node, .graph = graph, .count = count};
	memcpy(new->bodies, bodies, count * sizeof *bodies);
	pthread_mutex_lock(&lock);
	table_add(&nodes, &new->by_node, node);
	table_add(&graphs, &new->by_graph, graph);
	pthread_mutex_unlock(&lock);
}

CUgraph graph_bodies_of(CUgraphNode node, unsigned int number)
{
	CUgraph body = NULL;

	pthread_mutex_lock(&lock);
	const struct conditional *known = find_node(node);

	if (known && number < known->count)
		body = known->bodies[number];
	pthread_mutex_unlock(&lock);
	return body;
}

/* Another thread may have been in the middle of changing the lists. */
void graph_bodies_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(&nodes, 0, sizeof nodes);
	memset(&graphs, 0, sizeof graphs);
}
