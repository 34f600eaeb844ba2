#include "graph_instances.h"

#include "base/table.h"
#include "functions.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A graph that was instantiated: the graph must live as long as any instance. */
struct held_graph {
	struct table_entry entry;
	CUgraph graph;
	unsigned int instances;
	bool destroyed; /* by the application: we destroy the graph with the last instance */
};

struct held_exec {
	struct table_entry entry;
	CUgraphExec exec;
	struct held_graph *graph;
	/* The graph's nodes at the instantiation: the application may change the graph later, even during a launch. */
	struct graph_nodes nodes;
	uint64_t number; /* the nodes were uploaded under this number or a newer number */
	uint64_t where;
	bool has_expired;
};

/* Guards the tables. Taken when graphs and nodes are made or destroyed, and at the first launch after a change. Then
 * the lock is held while nodes are uploaded again, since no node may be destroyed meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table graphs;
static struct table execs;

/* The smallest number of the instances in each bucket. Read without the lock. */
static _Atomic uint64_t oldest[TABLE_BUCKETS] = {[0 ... TABLE_BUCKETS - 1] = UINT64_MAX};

/* An instance of each bucket, mixed with the instance's place after a move; 0: no instance. Read without the lock. */
static _Atomic uint64_t placed[TABLE_BUCKETS];

/* --- the table --------------------------------------------------------------------------------------------------- */

static struct held_graph *find_graph(CUgraph graph)
{
	return TABLE_CONTENT(table_find(&graphs, graph), struct held_graph, entry);
}

static struct held_exec *find_exec(CUgraphExec exec)
{
	return TABLE_CONTENT(table_find(&execs, exec), struct held_exec, entry);
}

/* The first instance of a bucket, and the next; NULL after the last. */
static struct held_exec *first_exec(unsigned int bucket)
{
	return TABLE_CONTENT(atomic_load_explicit(&execs.buckets[bucket], memory_order_relaxed), struct held_exec,
	                     entry);
}

static struct held_exec *next_exec(const struct held_exec *exec)
{
	return TABLE_CONTENT(exec->entry.next, struct held_exec, entry);
}

static void find_oldest(unsigned int bucket)
{
	uint64_t number = UINT64_MAX;

	for (const struct held_exec *exec = first_exec(bucket); exec; exec = next_exec(exec)) {
		if (exec->has_expired)
			number = 0;
		else if (exec->number < number)
			number = exec->number;
	}
	atomic_store_explicit(&oldest[bucket], number, memory_order_relaxed);
}

/* NULL if there is no memory. */
static struct held_graph *hold_graph(CUgraph graph)
{
	struct held_graph *held = find_graph(graph);

	if (!held) {
		held = calloc(1, sizeof *held);
		if (held) {
			held->graph = graph;
			table_add(&graphs, &held->entry, graph);
		}
	}
	if (held)
		held->instances++;
	return held;
}

/* The graph loses an instance. Returns the graph if the graph must be destroyed now, otherwise NULL. */
static CUgraph release_graph(struct held_graph *held)
{
	CUgraph unwanted = NULL;

	if (--held->instances == 0) {
		unwanted = held->destroyed ? held->graph : NULL;
		table_remove(&graphs, &held->entry);
		free(held);
	}
	return unwanted;
}

/* --- nodes that are destroyed ------------------------------------------------------------------------------------ */

static bool lose_node(CUgraphNode node, int type, void *data)
{
	(void)type;
	(void)data;
	for (unsigned int bucket = 0; bucket < TABLE_BUCKETS; bucket++) {
		for (struct held_exec *exec = first_exec(bucket); exec; exec = next_exec(exec))
			graph_nodes_lose(&exec->nodes, node);
	}
	graph_bodies_forget_node(node);
	return true;
}

void graph_instances_lose_node(CUgraphNode node)
{
	pthread_mutex_lock(&lock);
	graph_nodes_visit(node, lose_node, NULL);
	pthread_mutex_unlock(&lock);
}

/* --- making and destroying --------------------------------------------------------------------------------------- */

static void free_exec(struct held_exec *exec)
{
	if (exec)
		graph_nodes_free(&exec->nodes);
	free(exec);
}

/* Takes over `exec` and sets the graph. False without memory: the caller keeps `exec` then. */
static bool hold_exec(struct held_exec *exec, CUgraph graph)
{
	pthread_mutex_lock(&lock);
	exec->graph = hold_graph(graph);
	if (exec->graph) {
		table_add(&execs, &exec->entry, exec->exec);
		atomic_store(&placed[table_bucket(exec->exec)], 0);
		find_oldest(table_bucket(exec->exec));
	}
	pthread_mutex_unlock(&lock);
	return exec->graph;
}

void graph_instances_remove(CUgraphExec exec)
{
	CUgraph unwanted = NULL;

	pthread_mutex_lock(&lock);
	struct held_exec *held = find_exec(exec);

	if (held) {
		table_remove(&execs, &held->entry);
		unwanted = release_graph(held->graph);
		find_oldest(table_bucket(exec));
	}
	pthread_mutex_unlock(&lock);
	free_exec(held);
	if (unwanted)
		driver.graph_destroy(unwanted);
}

/* An old instance with the same handle was destroyed with the context, unannounced. */
bool graph_instances_add(CUgraphExec exec, CUgraph graph, uint64_t number)
{
	struct held_exec *held = calloc(1, sizeof *held);

	graph_instances_remove(exec);
	if (held)
		*held = (struct held_exec){.exec = exec, .number = number};
	bool is_known = held && graph_nodes_collect(&held->nodes, graph) && hold_exec(held, graph);

	if (!is_known)
		free_exec(held);
	return is_known;
}

bool graph_instances_run_once(CUgraphExec exec)
{
	pthread_mutex_lock(&lock);
	const struct held_exec *held = find_exec(exec);
	bool run_once = held && graph_nodes_run_once(&held->nodes);

	pthread_mutex_unlock(&lock);
	return run_once;
}

/* Whether the graph has instances; `destroyed`: the application has destroyed the graph already. */
static bool is_held(CUgraph graph, bool *destroyed)
{
	pthread_mutex_lock(&lock);
	const struct held_graph *held = find_graph(graph);

	*destroyed = held && held->destroyed;
	pthread_mutex_unlock(&lock);
	return held;
}

static bool mark_destroyed(CUgraph graph)
{
	pthread_mutex_lock(&lock);
	struct held_graph *held = find_graph(graph);

	if (held)
		held->destroyed = true;
	pthread_mutex_unlock(&lock);
	return held;
}

/* The graph for the driver to destroy in place of `graph`: `graph`; an empty graph if `graph` has instances; NULL if
 * the application destroys `graph` a second time, which the driver refuses just like `graph`. */
static CUgraph stand_in(CUgraph graph)
{
	bool destroyed;
	CUgraph empty = NULL;

	if (!is_held(graph, &destroyed))
		return graph;
	if (destroyed)
		return NULL;
	if (driver.graph_create(&empty, 0) != CUDA_SUCCESS)
		return graph;
	if (mark_destroyed(graph))
		return empty;
	/* A second thread has destroyed the last instance meanwhile. */
	driver.graph_destroy(empty);
	return graph;
}

CUgraph graph_instances_destroy_graph(CUgraph graph)
{
	CUgraph doomed = stand_in(graph);

	graph_bodies_forget_graph(doomed);
	return doomed;
}

/* --- renewing ----------------------------------------------------------------------------------------------------- */

bool graph_instances_may_be_older(CUgraphExec exec, uint64_t number)
{
	return atomic_load_explicit(&oldest[table_bucket(exec)], memory_order_relaxed) < number;
}

bool graph_instances_renew(CUgraphExec exec, uint64_t number, graph_instances_renewer *renew, void *data)
{
	pthread_mutex_lock(&lock);
	struct held_exec *held = find_exec(exec);

	if (held && (held->has_expired || held->number < number)) {
		renew(exec, &held->nodes, held->number != number, data);
		held->number = number;
		held->has_expired = false;
		find_oldest(table_bucket(exec));
	}
	pthread_mutex_unlock(&lock);
	return held;
}

static uint64_t mix(CUgraphExec exec, uint64_t where)
{
	return ((uintptr_t)exec * UINT64_C(0x9e3779b97f4a7c15) ^ (where + 1) * UINT64_C(0xbf58476d1ce4e5b9)) | 1;
}

static enum graph_move move(CUgraphExec exec, uint64_t where, bool may_move)
{
	struct held_exec *held = find_exec(exec);
	enum graph_move move = GRAPH_IS_THERE;

	if (!held || (held->where != where && !may_move)) {
		move = GRAPH_STAYS;
	} else if (held->where != where) {
		move = GRAPH_MOVES;
		held->where = where;
		held->has_expired = true;
		find_oldest(table_bucket(exec));
	}
	return move;
}

enum graph_move graph_instances_move(CUgraphExec exec, uint64_t where, bool may_move)
{
	_Atomic uint64_t *place = &placed[table_bucket(exec)];
	enum graph_move moved = GRAPH_IS_THERE;

	if (atomic_load(place) != mix(exec, where)) {
		pthread_mutex_lock(&lock);
		moved = move(exec, where, may_move);
		if (moved != GRAPH_STAYS)
			atomic_store(place, mix(exec, where));
		pthread_mutex_unlock(&lock);
	}
	return moved;
}

void graph_instances_expire(CUgraphExec exec)
{
	pthread_mutex_lock(&lock);
	struct held_exec *held = find_exec(exec);

	if (held) {
		held->has_expired = true;
		find_oldest(table_bucket(exec));
	}
	pthread_mutex_unlock(&lock);
}

/* --- forks ------------------------------------------------------------------------------------------------------- */

/* The lock cannot be taken before a fork: the forking thread may hold the lock already (in the handler of a signal), or
 * the holder may wait for an allocator that is stopped for the fork. A thread may have been in the middle of changing
 * the lists, so nothing there is freed. */
void graph_instances_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(&graphs, 0, sizeof graphs);
	memset(&execs, 0, sizeof execs);
	for (unsigned int bucket = 0; bucket < TABLE_BUCKETS; bucket++)
		atomic_store_explicit(&oldest[bucket], UINT64_MAX, memory_order_relaxed);
	graph_bodies_after_fork();
}
