#include "graphs.h"

#include "driver.h"
#include "log.h"
#include "strict.h"

#include <pthread.h>
#include <stdlib.h>

enum {
	CALL_LAUNCH = 514,
	CALL_LAUNCH_PER_THREAD = 515,
	CALL_EXEC_DESTROY = 516,
	CALL_GRAPH_DESTROY = 517,
	CALL_NODE_DESTROY = 522,
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

/* The nodes that an instance was made from, in child graphs too: the application may change the graph later on, even
 * while the instance is launched. */
struct nodes {
	CUgraphNode *list; /* those that can be uploaded again */
	size_t count;
	size_t room;
	size_t out_of_reach; /* how many others may hold kernels */
};

struct held_exec {
	struct held_exec *next;
	CUgraphExec exec;
	struct held_graph *graph;
	struct nodes nodes;
	uint64_t number; /* of the revision that its nodes were uploaded under, or an older one */
};

/* Guards all that follows. Taken when graphs and their nodes are made and destroyed, and at launches after a change:
 * then for as long as nodes are marked, since none of them may be destroyed meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct held_graph *graphs[BUCKETS];
static struct held_exec *execs[BUCKETS];

/* No instance in the bucket is older: read without the lock. */
static _Atomic uint64_t oldest[BUCKETS] = {[0 ... BUCKETS - 1] = UINT64_MAX};

static struct segment segment;
static bool expects_older;

void graphs_expect_older(void)
{
	expects_older = true;
}

void graphs_use(const struct segment *wanted)
{
	segment = *wanted;
}

/* A node will run outside the partition, or may. */
static void count_stale(void)
{
	static _Atomic bool warned;
	const char *reason = segment_reason_text(SEGMENT_STALE_GRAPH);

	strict_refuse(reason);
	segment_count_reason(&segment, SEGMENT_STALE_GRAPH);
	if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
		log_warning("%s", reason);
}

static unsigned int bucket_of(const void *handle)
{
	return (unsigned int)((uint64_t)(uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* --- the table --------------------------------------------------------------------------------------------------- */

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

static void find_oldest(unsigned int bucket)
{
	uint64_t number = UINT64_MAX;

	for (const struct held_exec *exec = execs[bucket]; exec; exec = exec->next) {
		if (exec->number < number)
			number = exec->number;
	}
	atomic_store_explicit(&oldest[bucket], number, memory_order_relaxed);
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

/* --- the nodes of a graph ---------------------------------------------------------------------------------------- */

static bool add_node(struct nodes *nodes, CUgraphNode node)
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

/* Uploading such a node again would undo what kernels have changed in it. */
static bool is_updated_by_kernels(CUgraphNode node)
{
	CUlaunchAttributeValue value = {.deviceUpdatableKernelNode = {.deviceUpdatable = 0}};

	return driver.graph_kernel_get_attribute &&
	       driver.graph_kernel_get_attribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) ==
	               CUDA_SUCCESS &&
	       value.deviceUpdatableKernelNode.deviceUpdatable;
}

/* Calls `visit` for each node of a graph. */
static bool for_each_node(CUgraph graph, bool (*visit)(CUgraphNode node, void *data), void *data)
{
	size_t count = 0;
	bool done = driver.graph_get_nodes(graph, NULL, &count) == CUDA_SUCCESS;
	CUgraphNode *list = count > 0 ? malloc(count * sizeof(CUgraphNode)) : NULL;

	if (count > 0)
		done = list && driver.graph_get_nodes(graph, list, &count) == CUDA_SUCCESS;
	for (size_t i = 0; i < count && done; i++)
		done = visit(list[i], data);
	free(list);
	return done;
}

/* Memsets can be kernels, too (docs/hardware.md). */
static bool collect(CUgraphNode node, void *data)
{
	struct nodes *nodes = data;
	CUgraph child;
	int type;
	bool done = driver.graph_node_get_type(node, &type) == CUDA_SUCCESS;

	if (!done)
		return false;
	/* The bodies of conditional nodes cannot be reached. */
	if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
	    (type == CU_GRAPH_NODE_TYPE_KERNEL && is_updated_by_kernels(node)))
		nodes->out_of_reach++;
	else if (type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMSET)
		done = add_node(nodes, node);
	else if (type == CU_GRAPH_NODE_TYPE_GRAPH)
		done = driver.graph_child(node, &child) == CUDA_SUCCESS && for_each_node(child, collect, nodes);
	return done;
}

static void forget_node_of(struct nodes *nodes, CUgraphNode node)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (nodes->list[i] == node) {
			nodes->list[i] = nodes->list[--nodes->count];
			nodes->out_of_reach++;
		}
	}
}

/* A node is about to be destroyed, and all that is in it: an instance that was made from it goes on to run it. */
static bool forget_node(CUgraphNode node, void *data)
{
	CUgraph child;
	int type;

	for (unsigned int bucket = 0; bucket < BUCKETS; bucket++) {
		for (struct held_exec *exec = execs[bucket]; exec; exec = exec->next)
			forget_node_of(&exec->nodes, node);
	}
	if (driver.graph_node_get_type(node, &type) == CUDA_SUCCESS && type == CU_GRAPH_NODE_TYPE_GRAPH &&
	    driver.graph_child(node, &child) == CUDA_SUCCESS)
		for_each_node(child, forget_node, data);
	return true;
}

static void node_destroyed(CUgraphNode node)
{
	pthread_mutex_lock(&lock);
	forget_node(node, NULL);
	pthread_mutex_unlock(&lock);
}

/* --- making and destroying --------------------------------------------------------------------------------------- */

/* The revision that was in force when this thread's call began: some calls that make instances upload them as well. */
static __thread uint64_t number_at_begin __attribute__((tls_model("initial-exec")));

static void free_exec(struct held_exec *exec)
{
	if (exec)
		free(exec->nodes.list);
	free(exec);
}

/* Takes over `exec`, but for its graph. False where there is no memory. */
static bool hold_exec(struct held_exec *exec, CUgraph graph)
{
	unsigned int bucket = bucket_of(exec->exec);

	pthread_mutex_lock(&lock);
	exec->graph = hold_graph(graph);
	if (exec->graph) {
		exec->next = execs[bucket];
		execs[bucket] = exec;
		find_oldest(bucket);
	}
	pthread_mutex_unlock(&lock);
	return exec->graph;
}

static void exec_destroyed(CUgraphExec exec)
{
	CUgraph unwanted = NULL;

	pthread_mutex_lock(&lock);
	struct held_exec **place = find_exec(exec), *held = *place;

	if (held) {
		*place = held->next;
		unwanted = release_graph(held->graph);
		find_oldest(bucket_of(exec));
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
	if (!held || !for_each_node(graph, collect, &held->nodes) || !hold_exec(held, graph)) {
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

/* --- refreshing -------------------------------------------------------------------------------------------------- */

/* A disabled node stays disabled, and is uploaded when the application enables it. */
static void refresh_node(CUgraphExec exec, CUgraphNode node)
{
	unsigned int enabled = 0;
	CUresult result = driver.graph_node_get_enabled(exec, node, &enabled);

	if (result == CUDA_SUCCESS && enabled) {
		result = driver.graph_node_set_enabled(exec, node, false);
		/* The answer where a cluster is not portable, although it is done (docs/hardware.md). */
		if (result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_CLUSTER_SIZE)
			result = driver.graph_node_set_enabled(exec, node, true);
	}
	if (result == CUDA_SUCCESS)
		segment_count_refresh(&segment);
	else
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
	return expects_older && number_at_begin > 1;
}

static void launch_begins(CUgraphExec exec)
{
	unsigned int bucket = bucket_of(exec);

	if (__builtin_expect(atomic_load_explicit(&oldest[bucket], memory_order_relaxed) < number_at_begin, 0) ||
	    __builtin_expect(older_are_stale(), 0)) {
		pthread_mutex_lock(&lock);
		struct held_exec *held = *find_exec(exec);

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

static bool uploads(int call)
{
	return call != CALL_EXEC_DESTROY && call != CALL_GRAPH_DESTROY && call != CALL_NODE_DESTROY;
}

static bool launches(int call)
{
	return call == CALL_LAUNCH || call == CALL_LAUNCH_PER_THREAD || call == CALL_UPLOAD ||
	       call == CALL_UPLOAD_PER_THREAD;
}

static bool instantiates(int call)
{
	return uploads(call) && !launches(call);
}

void graphs_call_begins(int call, void **arguments)
{
	number_at_begin = segment_revision_number(&segment);
	if (launches(call))
		launch_begins(arguments[0]);
	else if (call == CALL_EXEC_DESTROY)
		exec_destroyed(arguments[0]);
	else if (call == CALL_GRAPH_DESTROY)
		arguments[0] = stand_in(arguments[0]);
	else if (call == CALL_NODE_DESTROY)
		node_destroyed(arguments[0]);
	graphs_uploading = uploads(call);
}

void graphs_call_ended(int call, void *const *arguments, CUresult result)
{
	graphs_uploading = false;
	restore_narrowed();
	if (instantiates(call) && result == CUDA_SUCCESS && arguments[0])
		instantiated(*(CUgraphExec *)arguments[0], arguments[1]);
}
