#include "graphs.h"

#include "driver.h"

#include <pthread.h>
#include <stdlib.h>

enum {
	CALL_LAUNCH = 514,
	CALL_LAUNCH_PER_THREAD = 515,
	CALL_EXEC_DESTROY = 516,
	CALL_GRAPH_DESTROY = 517,
	CALL_UPLOAD = 580,
	CALL_UPLOAD_PER_THREAD = 581
};

#define BUCKETS 256 /* a power of two */

/* A graph that was instantiated and lives as long as an instance of it. */
struct held_graph {
	struct held_graph *next;
	CUgraph graph;
	unsigned int instances;
	bool destroyed; /* by the application: it goes with the last instance */
};

struct held_exec {
	struct held_exec *next;
	CUgraphExec exec;
	struct held_graph *graph;
	uint64_t number; /* of the revision that its nodes were uploaded under, or an older one */
};

/* Guards all that follows. Taken when graphs are made and destroyed, and at launches after a change. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct held_graph *graphs[BUCKETS];
static struct held_exec *execs[BUCKETS];

/* No instance is older: read without the lock. */
static _Atomic uint64_t oldest = UINT64_MAX;

static struct segment segment;

void graphs_use(const struct segment *wanted)
{
	segment = *wanted;
}

static unsigned int bucket_of(const void *handle)
{
	return (unsigned int)((uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* --- the table ------------------------------------------------------------------------------------------------ */

/* The place of the entry, whose content is NULL where there is none. */
static struct held_graph **find_graph(CUgraph graph)
{
	struct held_graph **place = &graphs[bucket_of(graph)];

	while (*place && (*place)->graph != graph)
		place = &(*place)->next;
	return place;
}

static struct held_exec **find_exec(CUgraphExec exec)
{
	struct held_exec **place = &execs[bucket_of(exec)];

	while (*place && (*place)->exec != exec)
		place = &(*place)->next;
	return place;
}

static void find_oldest(void)
{
	uint64_t number = UINT64_MAX;

	for (unsigned int bucket = 0; bucket < BUCKETS; bucket++) {
		for (const struct held_exec *exec = execs[bucket]; exec; exec = exec->next) {
			if (exec->number < number)
				number = exec->number;
		}
	}
	atomic_store_explicit(&oldest, number, memory_order_relaxed);
}

/* NULL where there is no memory. */
static struct held_graph *hold_graph(CUgraph graph)
{
	struct held_graph **place = find_graph(graph);

	if (!*place) {
		*place = calloc(1, sizeof **place);
		if (*place)
			(*place)->graph = graph;
	}
	if (*place)
		(*place)->instances++;
	return *place;
}

/* One instance less. The graph that is to be destroyed now, or NULL. */
static CUgraph release_graph(struct held_graph *held)
{
	CUgraph unwanted = NULL;

	if (--held->instances == 0) {
		struct held_graph **place = find_graph(held->graph);

		unwanted = held->destroyed ? held->graph : NULL;
		*place = held->next;
		free(held);
	}
	return unwanted;
}

/* --- making and destroying ------------------------------------------------------------------------------------ */

static void instantiated(CUgraphExec exec, CUgraph graph)
{
	struct held_exec *held = calloc(1, sizeof *held);

	pthread_mutex_lock(&lock);
	struct held_graph *held_graph = held ? hold_graph(graph) : NULL;

	if (held_graph) {
		struct held_exec **place = &execs[bucket_of(exec)];

		*held = (struct held_exec){.next = *place,
		                           .exec = exec,
		                           .graph = held_graph,
		                           .number = segment_revision_number(&segment)};
		*place = held;
		find_oldest();
		held = NULL;
	} else {
		segment_count_reason(&segment, SEGMENT_STALE_GRAPH);
	}
	pthread_mutex_unlock(&lock);
	free(held);
}

static void exec_destroyed(CUgraphExec exec)
{
	CUgraph unwanted = NULL;

	pthread_mutex_lock(&lock);
	struct held_exec **place = find_exec(exec), *held = *place;

	if (held) {
		*place = held->next;
		unwanted = release_graph(held->graph);
		find_oldest();
	}
	pthread_mutex_unlock(&lock);
	free(held);
	if (unwanted)
		driver.graph_destroy(unwanted);
}

/* Whether an instance needs the graph; `destroyed` says whether the application has destroyed it already. */
static bool is_held(CUgraph graph, bool *destroyed)
{
	pthread_mutex_lock(&lock);
	const struct held_graph *held = *find_graph(graph);

	*destroyed = held && held->destroyed;
	pthread_mutex_unlock(&lock);
	return held;
}

static bool mark_destroyed(CUgraph graph)
{
	pthread_mutex_lock(&lock);
	struct held_graph *held = *find_graph(graph);

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

/* --- refreshing ------------------------------------------------------------------------------------------------- */

static void refresh_graph(CUgraphExec exec, CUgraph graph);

/* A disabled node stays disabled, and is uploaded when the application enables it. */
static void refresh_kernel(CUgraphExec exec, CUgraphNode node)
{
	unsigned int enabled = 0;
	CUresult result = driver.graph_node_get_enabled(exec, node, &enabled);

	if (result == CUDA_SUCCESS && enabled) {
		result = driver.graph_node_set_enabled(exec, node, false);
		if (result == CUDA_SUCCESS)
			result = driver.graph_node_set_enabled(exec, node, true);
	}
	if (result == CUDA_SUCCESS)
		segment_count_refresh(&segment);
	else
		segment_count_reason(&segment, SEGMENT_STALE_GRAPH);
}

static void refresh_node(CUgraphExec exec, CUgraphNode node)
{
	CUgraph child;
	int type;

	/* The bodies of conditional nodes are out of our reach. */
	if (driver.graph_node_get_type(node, &type) != CUDA_SUCCESS || type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		segment_count_reason(&segment, SEGMENT_STALE_GRAPH);
	else if (type == CU_GRAPH_NODE_TYPE_KERNEL)
		refresh_kernel(exec, node);
	else if (type == CU_GRAPH_NODE_TYPE_GRAPH && driver.graph_child(node, &child) == CUDA_SUCCESS)
		refresh_graph(exec, child);
}

static void refresh_graph(CUgraphExec exec, CUgraph graph)
{
	size_t count = 0;
	CUgraphNode *nodes = NULL;

	if (driver.graph_get_nodes(graph, NULL, &count) == CUDA_SUCCESS && count > 0)
		nodes = malloc(count * sizeof *nodes);
	if (nodes && driver.graph_get_nodes(graph, nodes, &count) == CUDA_SUCCESS) {
		for (size_t i = 0; i < count; i++)
			refresh_node(exec, nodes[i]);
	} else if (count > 0) {
		segment_count_reason(&segment, SEGMENT_STALE_GRAPH);
	}
	free(nodes);
}

/* The graph to refresh, or NULL where the instance is up to date or not known; it is up to date from here on. */
static CUgraph take_stale(CUgraphExec exec, uint64_t number)
{
	CUgraph stale = NULL;

	pthread_mutex_lock(&lock);
	struct held_exec *held = *find_exec(exec);

	if (held && held->number < number) {
		stale = held->graph->graph;
		held->number = number;
		find_oldest();
	}
	pthread_mutex_unlock(&lock);
	return stale;
}

static void launch_begins(CUgraphExec exec)
{
	uint64_t number = segment_revision_number(&segment);

	if (__builtin_expect(atomic_load_explicit(&oldest, memory_order_relaxed) < number, 0)) {
		CUgraph stale = take_stale(exec, number);

		if (stale)
			refresh_graph(exec, stale);
	}
}

/* --- descriptors that are used again ----------------------------------------------------------------------------- */

struct narrowed {
	const struct qmd_family *family;
	void *qmd;
	struct qmd_saved saved;
};

__thread bool graphs_uploading __attribute__((tls_model("initial-exec")));

/* Of this thread's call. */
static __thread struct {
	struct narrowed *list;
	size_t count;
	size_t room;
} narrowed __attribute__((tls_model("initial-exec")));

void graphs_remember(const struct qmd_family *family, void *qmd)
{
	if (!qmd_is_known(family, qmd))
		return;
	if (narrowed.count == narrowed.room) {
		size_t room = narrowed.room ? 2 * narrowed.room : 64;
		struct narrowed *list = realloc(narrowed.list, room * sizeof *list);

		if (!list) {
			/* It keeps this partition, as far as later ones reach beyond it. */
			segment_count_reason(&segment, SEGMENT_STALE_GRAPH);
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

/* --- calls -------------------------------------------------------------------------------------------------------- */

static bool destroys(int call)
{
	return call == CALL_EXEC_DESTROY || call == CALL_GRAPH_DESTROY;
}

static bool launches(int call)
{
	return call == CALL_LAUNCH || call == CALL_LAUNCH_PER_THREAD;
}

static bool instantiates(int call)
{
	return !destroys(call) && !launches(call) && call != CALL_UPLOAD && call != CALL_UPLOAD_PER_THREAD;
}

void graphs_call_begins(int call, void **arguments)
{
	if (launches(call))
		launch_begins(arguments[0]);
	else if (call == CALL_EXEC_DESTROY)
		exec_destroyed(arguments[0]);
	else if (call == CALL_GRAPH_DESTROY)
		arguments[0] = stand_in(arguments[0]);
	graphs_uploading = !destroys(call);
}

void graphs_call_ended(int call, void *const *arguments, CUresult result)
{
	graphs_uploading = false;
	restore_narrowed();
	if (instantiates(call) && result == CUDA_SUCCESS && arguments[0])
		instantiated(*(CUgraphExec *)arguments[0], arguments[1]);
}
