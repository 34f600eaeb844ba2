#include "graphs.h"

#include "account.h"
#include "base/table.h"
#include "driver/functions.h"
#include "driver/graph_bodies.h"
#include "driver/graph_nodes.h"
#include "epoch.h"
#include "escape.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A graph that was instantiated and lives as long as an instance of it. */
struct held_graph {
	struct table_entry entry;
	CUgraph graph;
	unsigned int instances;
	bool destroyed; /* by the application: it goes with the last instance */
};

struct held_exec {
	struct table_entry entry;
	CUgraphExec exec;
	struct held_graph *graph;
	struct graph_nodes nodes; /* that it was made from: the application may change the graph later on,
	                           * even while the instance is launched */
	uint64_t number; /* of the revision that its nodes were uploaded under, or an older one */
};

/* Guards all that follows. Taken when graphs and their nodes are made and destroyed, and at launches after a change:
 * then for as long as nodes are marked, since none of them may be destroyed meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table graphs;
static struct table execs;

/* No instance in the bucket is older: read without the lock. */
static _Atomic uint64_t oldest[TABLE_BUCKETS] = {[0 ... TABLE_BUCKETS - 1] = UINT64_MAX};

static bool expects_older;
static uint64_t whole_number; /* the revision in force since graphs_use, where it leaves all GPUs whole; otherwise 0 */

void graphs_expect_older(void)
{
	expects_older = true;
}

void graphs_use(const struct segment *segment)
{
	struct segment_revision revision;
	uint64_t number;

	whole_number = segment_read(segment, &revision, &number) && revision.count == 0 ? number : 0;
}

/* A node will run outside the partition, or may. */
static void count_stale(void)
{
	escape_note(SEGMENT_STALE_GRAPH);
}

/* --- the table --------------------------------------------------------------------------------------------------- */

static struct held_graph *find_graph(CUgraph graph)
{
	return TABLE_CONTENT(table_find(&graphs, graph), struct held_graph, entry);
}

static struct held_exec *find_exec(CUgraphExec exec)
{
	return TABLE_CONTENT(table_find(&execs, exec), struct held_exec, entry);
}

/* The first of a bucket, then those behind it; NULL behind the last one. */
static struct held_exec *first_exec(unsigned int bucket)
{
	return TABLE_CONTENT(atomic_load_explicit(&execs.buckets[bucket], memory_order_relaxed), struct held_exec, entry);
}

static struct held_exec *next_exec(const struct held_exec *exec)
{
	return TABLE_CONTENT(exec->entry.next, struct held_exec, entry);
}

static void find_oldest(unsigned int bucket)
{
	uint64_t number = UINT64_MAX;

	for (const struct held_exec *exec = first_exec(bucket); exec; exec = next_exec(exec)) {
		if (exec->number < number)
			number = exec->number;
	}
	atomic_store_explicit(&oldest[bucket], number, memory_order_relaxed);
}

/* NULL where there is no memory. */
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

/* One instance less. The graph that is to be destroyed now, or NULL. */
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

/* --- nodes that go ----------------------------------------------------------------------------------------------- */

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

/* Before it is, and all that lies in it. */
static void node_destroyed(CUgraphNode node)
{
	pthread_mutex_lock(&lock);
	graph_nodes_visit(node, lose_node, NULL);
	pthread_mutex_unlock(&lock);
}

/* --- making and destroying --------------------------------------------------------------------------------------- */

/* The revision that was in force when this thread's call began: some calls that make instances upload them as well. */
static __thread uint64_t number_at_begin __attribute__((tls_model("initial-exec")));

static void free_exec(struct held_exec *exec)
{
	if (exec)
		graph_nodes_free(&exec->nodes);
	free(exec);
}

/* Takes over `exec`, but for its graph. False where there is no memory. */
static bool hold_exec(struct held_exec *exec, CUgraph graph)
{
	pthread_mutex_lock(&lock);
	exec->graph = hold_graph(graph);
	if (exec->graph) {
		table_add(&execs, &exec->entry, exec->exec);
		find_oldest(table_bucket(exec->exec));
	}
	pthread_mutex_unlock(&lock);
	return exec->graph;
}

static void exec_destroyed(CUgraphExec exec)
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

static bool is_launched_by_kernels(CUgraphExec exec)
{
	uint64_t flags = 0;

	return driver.graph_exec_get_flags && driver.graph_exec_get_flags(exec, &flags) == CUDA_SUCCESS &&
	       flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
}

/* A handle that comes again had been given up without our hearing of it, with its context. Launches by kernels are not
 * announced: they are counted here, all as one. */
static void instantiated(CUgraphExec exec, CUgraph graph)
{
	struct held_exec *held = calloc(1, sizeof *held);

	exec_destroyed(exec);
	if (held)
		*held = (struct held_exec){.exec = exec, .number = number_at_begin};
	if (!held || !graph_nodes_collect(&held->nodes, graph) || !hold_exec(held, graph)) {
		count_stale();
		free_exec(held);
	}
	if (is_launched_by_kernels(exec))
		count_stale();
}

/* Whether an instance needs the graph; `destroyed` says whether the application has destroyed it already. */
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

/* What the driver shall destroy in place of `graph`: itself, an empty one, or, where the application has destroyed it
 * before, nothing, which the driver refuses as it would have. */
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
	/* The last instance went meanwhile. */
	driver.graph_destroy(empty);
	return graph;
}

static CUgraph graph_destroyed(CUgraph graph)
{
	CUgraph doomed = stand_in(graph);

	graph_bodies_forget_graph(doomed);
	return doomed;
}

static void node_added(const struct call *call)
{
	const struct call_add_node *arguments = (const struct call_add_node *)call->arguments;
	const CUgraphNodeParams *parameters = calls_node_parameters(call);

	if (parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		graph_bodies_remember(arguments->graph, *arguments->node, parameters->conditional.phGraph_out,
		                      parameters->conditional.size);
}

/* --- refreshing -------------------------------------------------------------------------------------------------- */

/* Has the driver upload the node again. It refuses to disable a cluster that is not portable, and does it all the same
 * (docs/hardware.md): whatever it answers, the node must be enabled afterwards, or the program loses a kernel. */
static CUresult toggle(CUgraphExec exec, CUgraphNode node)
{
	CUresult disabled = driver.graph_node_set_enabled(exec, node, false);
	CUresult result = driver.graph_node_set_enabled(exec, node, true);

	return result == CUDA_SUCCESS && disabled != CUDA_ERROR_INVALID_CLUSTER_SIZE ? disabled : result;
}

/* A disabled node stays disabled, and is uploaded when the application enables it. */
static void refresh_node(CUgraphExec exec, CUgraphNode node)
{
	unsigned int enabled = 0;
	CUresult result = driver.graph_node_get_enabled(exec, node, &enabled);

	if (result == CUDA_SUCCESS && enabled)
		result = toggle(exec, node);
	if (result == CUDA_SUCCESS)
		account_refresh();
	else if (graph_nodes_can_be_kernel(node))
		count_stale();
}

static void refresh(const struct held_exec *exec)
{
	for (size_t i = 0; i < exec->nodes.count; i++)
		refresh_node(exec->exec, exec->nodes.list[i]);
	for (size_t i = 0; i < exec->nodes.out_of_reach; i++)
		count_stale();
}

/* Whether what was uploaded before we came runs elsewhere than it may by now. */
static bool older_are_stale(void)
{
	return expects_older && number_at_begin > whole_number;
}

static void launch_begins(CUgraphExec exec)
{
	unsigned int bucket = table_bucket(exec);

	if (__builtin_expect(atomic_load_explicit(&oldest[bucket], memory_order_relaxed) < number_at_begin, 0) ||
	    __builtin_expect(older_are_stale(), 0)) {
		pthread_mutex_lock(&lock);
		struct held_exec *held = find_exec(exec);

		if (held && held->number < number_at_begin) {
			refresh(held);
			held->number = number_at_begin;
			find_oldest(bucket);
		} else if (!held && older_are_stale()) {
			count_stale();
		}
		pthread_mutex_unlock(&lock);
	}
}

/* --- descriptors that are used again ----------------------------------------------------------------------------- */

struct narrowed {
	const struct qmd_family *family;
	void *qmd;
	struct qmd_saved saved;
};

/* Of this thread's call. */
static __thread struct {
	struct narrowed *list;
	size_t count;
	size_t room;
} narrowed __attribute__((tls_model("initial-exec")));

void graphs_remember(const struct qmd_family *family, void *qmd)
{
	if (narrowed.count == narrowed.room) {
		size_t room = narrowed.room ? 2 * narrowed.room : 64;
		struct narrowed *list = realloc(narrowed.list, room * sizeof *list);

		if (!list) {
			/* It keeps this partition, as far as later ones reach beyond it. */
			count_stale();
			return;
		}
		narrowed.list = list;
		narrowed.room = room;
	}
	narrowed.list[narrowed.count++] =
		(struct narrowed){.family = family, .qmd = qmd, .saved = qmd_save(family, qmd)};
}

static void restore_narrowed(void)
{
	for (size_t i = 0; i < narrowed.count; i++)
		qmd_restore(narrowed.list[i].family, narrowed.list[i].qmd, &narrowed.list[i].saved);
	free(narrowed.list);
	narrowed.list = NULL;
	narrowed.count = narrowed.room = 0;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

void graphs_call_begins(const struct call *call)
{
	struct call_destroy_graph *destroyed = (struct call_destroy_graph *)call->arguments;

	number_at_begin = epoch_of_masks();
	if (calls_launch_graph(call->id))
		launch_begins(((const struct call_exec *)call->arguments)->exec);
	else if (call->id == CALL_GRAPH_EXEC_DESTROY)
		exec_destroyed(((const struct call_exec *)call->arguments)->exec);
	else if (call->id == CALL_GRAPH_DESTROY)
		destroyed->graph = graph_destroyed(destroyed->graph);
	else if (call->id == CALL_GRAPH_NODE_DESTROY)
		node_destroyed(((const struct call_destroy_node *)call->arguments)->node);
}

void graphs_call_ended(const struct call *call)
{
	const struct call_instantiate *made = (const struct call_instantiate *)call->arguments;

	restore_narrowed();
	if (calls_instantiate_graph(call->id) && *call->result == CUDA_SUCCESS && made->exec)
		instantiated(*made->exec, made->graph);
	else if (calls_add_node(call->id) && *call->result == CUDA_SUCCESS)
		node_added(call);
}

/* --- forks ------------------------------------------------------------------------------------------------------- */

/* The lock cannot be held over a fork instead: its holder may be who forks, in the callback of a tool that hears of our own
 * calls, or may wait for an allocator that has stopped for the fork. And another thread may have been in the middle of
 * changing the lists: nothing of them is freed. */
void graphs_after_fork(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(&graphs, 0, sizeof graphs);
	memset(&execs, 0, sizeof execs);
	for (unsigned int bucket = 0; bucket < TABLE_BUCKETS; bucket++)
		atomic_store_explicit(&oldest[bucket], UINT64_MAX, memory_order_relaxed);
	graph_bodies_after_fork();
}
