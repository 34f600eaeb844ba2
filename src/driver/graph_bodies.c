#include "graph_bodies.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256 /* what the hash has bits for */

struct conditional {
	struct conditional *next_by_node;
	struct conditional *next_by_graph; /* once it is forgotten: of those that are to be freed */
	CUgraphNode node;
	CUgraph graph; /* which it lies in */
	unsigned int count;
	CUgraph bodies[];
};

/* Each is in both. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct conditional *by_node[BUCKETS];
static struct conditional *by_graph[BUCKETS];

static unsigned int bucket_of(const void *handle)
{
	return (unsigned int)((uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* The place of the entry, whose content is NULL where there is none. */
static struct conditional **find_node(CUgraphNode node)
{
	struct conditional **place = &by_node[bucket_of(node)];

	while (*place && (*place)->node != node)
		place = &(*place)->next_by_node;
	return place;
}

static struct conditional **find_graph(CUgraph graph)
{
	struct conditional **place = &by_graph[bucket_of(graph)];

	while (*place && (*place)->graph != graph)
		place = &(*place)->next_by_graph;
	return place;
}

/* --- forgetting -------------------------------------------------------------------------------------------------- */

/* Moves one to those that are to be freed. */
static void doom(struct conditional *conditional, struct conditional **doomed)
{
	struct conditional **in_graph = &by_graph[bucket_of(conditional->graph)];

	while (*in_graph != conditional)
		in_graph = &(*in_graph)->next_by_graph;
	*in_graph = conditional->next_by_graph;
	*find_node(conditional->node) = conditional->next_by_node;
	conditional->next_by_graph = *doomed;
	*doomed = conditional;
}

static void doom_graph(CUgraph graph, struct conditional **doomed)
{
	struct conditional **place = find_graph(graph);

	while (*place) {
		doom(*place, doomed);
		place = find_graph(graph);
	}
}

/* Frees them, and what lies in them. */
static void free_all(struct conditional *doomed)
{
	while (doomed) {
		struct conditional *gone = doomed;

		doomed = gone->next_by_graph;
		for (unsigned int i = 0; i < gone->count; i++)
			doom_graph(gone->bodies[i], &doomed);
		free(gone);
	}
}

void graph_bodies_forget_node(CUgraphNode node)
{
	struct conditional *doomed = NULL;

	pthread_mutex_lock(&lock);
	struct conditional *known = *find_node(node);

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

static void insert(struct conditional *conditional)
{
	struct conditional **nodes = &by_node[bucket_of(conditional->node)];
	struct conditional **graphs = &by_graph[bucket_of(conditional->graph)];

	conditional->next_by_node = *nodes;
	conditional->next_by_graph = *graphs;
	*nodes = *graphs = conditional;
}

void graph_bodies_remember(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned int count)
{
	struct conditional *new = malloc(sizeof *new + count * sizeof *bodies);

	/* One that had the handle before is gone without our hearing of it. */
	graph_bodies_forget_node(node);
	if (!new)
		return;
	*new = (struct conditional){.node = node, .graph = graph, .count = count};
	memcpy(new->bodies, bodies, count * sizeof *bodies);
	pthread_mutex_lock(&lock);
	insert(new);
	pthread_mutex_unlock(&lock);
}

CUgraph graph_bodies_of(CUgraphNode node, unsigned int number)
{
	CUgraph body = NULL;

	pthread_mutex_lock(&lock);
	const struct conditional *known = *find_node(node);

	if (known && number < known->count)
		body = known->bodies[number];
	pthread_mutex_unlock(&lock);
	return body;
}

/* Another thread may have been in the middle of changing the lists. */
void graph_bodies_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(by_node, 0, sizeof by_node);
	memset(by_graph, 0, sizeof by_graph);
}
