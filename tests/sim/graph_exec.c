/*
 * Instantiated graphs, and when their kernel nodes are uploaded (facts.md, "CUDA graphs"): at the first launch or
 * cuGraphUpload, and after the node was disabled and enabled again or given other parameters. Only then does the launch
 * callback come, and only then does the mask in force reach the node.
 */
#include "context.h"
#include "engine.h"
#include "faults.h"
#include "gpu_time.h"
#include "graph.h"
#include "hook.h"
#include "memory.h"
#include "module.h"
#include "stream.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct exec_node {
	uint64_t serial; /* of the graph's node */
	struct launch launch;
	bool runs; /* false in a body that does not run */
	bool has_descriptor; /* made as a kernel; a fill that becomes one later is launched as outside of graphs */
	bool enabled;
	bool written;  /* `host` is written, and used for every upload: a callback's changes stay in it */
	bool written_enabled; /* what it is written for: the node, or what takes its place when it is disabled */
	bool uploaded;
	bool has_next;
	bool fetches_ahead; /* the parameters of the next one */
	struct descriptor host;   /* the copy that callbacks see: changing it after the upload has no effect */
	struct descriptor device; /* the copy that runs */
};

struct CUgraphExec_st {
	CUgraphExec next; /* next in the list of instances with conditional nodes */
	uint64_t serial;  /* of the graph */
	size_t count;
	struct exec_node *nodes;
	uint64_t allocated; /* bytes, of allocating nodes */
	bool is_refreshed; /* a callback has changed nodes, which are not yet uploaded */
};

/* --- conditional nodes ---------------------------------------------------------------------------------- */

/* A graph with such nodes has one instance at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUgraphExec with_conditional;

static bool add_only_instance(CUgraphExec exec)
{
	pthread_mutex_lock(&lock);
	CUgraphExec other = with_conditional;

	while (other && other->serial != exec->serial)
		other = other->next;
	if (!other) {
		exec->next = with_conditional;
		with_conditional = exec;
	}
	pthread_mutex_unlock(&lock);
	return !other;
}

static void remove_only_instance(CUgraphExec exec)
{
	pthread_mutex_lock(&lock);
	CUgraphExec *link = &with_conditional;

	while (*link && *link != exec)
		link = &(*link)->next;
	if (*link)
		*link = exec->next;
	pthread_mutex_unlock(&lock);
}

/* --- making --------------------------------------------------------------------------------------------- */

static void count_node(CUgraphNode node, bool runs, void *data)
{
	++*(size_t *)data;
}

static void append_node(CUgraphNode node, bool runs, void *data)
{
	CUgraphExec exec = data;
	struct exec_node *new = &exec->nodes[exec->count++];

	new->serial = node->serial;
	new->launch = node->launch;
	new->runs = runs;
	new->has_descriptor = !node->launch.function->is_unannounced;
	new->enabled = true;
}

static unsigned int count_kernels(CUgraph graph)
{
	unsigned int count = 0;

	for (CUgraphNode node = graph->first; node; node = node->next) {
		if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
			count += count_kernels(node->inside[0]);
		else
			count += node->type == CU_GRAPH_NODE_TYPE_KERNEL;
	}
	return count;
}

/* The driver puts a kernel of its own in front of several kernels (hardware.md, "Graphs"). The program has no handle of it. */
static struct launch drivers_launch(CUcontext context)
{
	static struct CUfunc_st function = {.name = "driver"};

	return (struct launch){.context = context, .function = &function, .grid = {0, 1, 1}, .block = {32, 1, 1}};
}

static void connect(CUgraphExec exec)
{
	for (size_t i = 0; i + 1 < exec->count; i++)
		exec->nodes[i].has_next = exec->nodes[i].fetches_ahead =
			exec->nodes[i].has_descriptor && descriptor_has_next(exec->nodes[i].launch.context->gpu);
}

static CUgraphExec flatten(CUgraph graph)
{
	CUgraphExec exec = calloc(1, sizeof *exec);
	size_t count = 0;

	if (!exec)
		return NULL;
	exec->serial = graph->serial;
	exec->allocated = graph_allocated(graph);
	graph_visit_launches(graph, true, count_node, &count);
	exec->nodes = calloc(count + 1, sizeof *exec->nodes); /* and the driver's own */
	if (exec->nodes) {
		bool has_drivers = count_kernels(graph) > 1;

		exec->count = has_drivers;
		graph_visit_launches(graph, true, append_node, exec);
		if (has_drivers)
			exec->nodes[0] = (struct exec_node){
				.launch = drivers_launch(exec->nodes[1].launch.context), .runs = true, .has_descriptor = true,
				.enabled = true,
			};
		connect(exec);
	} else {
		free(exec);
		exec = NULL;
	}
	return exec;
}

HOOKED_1(cuGraphExecDestroy, CUgraphExec, exec)
{
	if (exec->allocated > 0)
		device_memory_graph_ends();
	remove_only_instance(exec);
	free(exec->nodes);
	free(exec);
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
	CUgraphExec new = flatten(graph);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (graph_has_conditional(graph) && !add_only_instance(new)) {
		do_cuGraphExecDestroy(new);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	*exec = new;
	return CUDA_SUCCESS;
}

HOOKED_3(cuGraphInstantiateWithFlags, CUgraphExec *, exec, CUgraph, graph, unsigned long long, flags)
{
	return instantiate(exec, graph);
}

/* --- uploading and launching ------------------------------------------------------------------------------ */

/* In place of a disabled node, the driver has a kernel of its own. */
static struct launch launch_of(const struct exec_node *node)
{
	return node->enabled ? node->launch : drivers_launch(node->launch.context);
}

/* What a callback has made of it. */
static void check_fetching(CUgraphExec exec, struct exec_node *node, const struct topology *gpu)
{
	bool fetches_ahead = node->has_next && descriptor_fetches_ahead(&node->host, gpu);

	if (fetches_ahead && !node->fetches_ahead && !exec->is_refreshed)
		fatal("a callback lets a node fetch the parameters of one that the program has changed");
	if (!fetches_ahead && node->has_next && fault(FAULT_SLOW_NODES))
		fatal("a node no longer fetches the parameters of the next one ahead");
	node->fetches_ahead = fetches_ahead;
}

static void upload(CUgraphExec exec, struct exec_node *node)
{
	const struct launch launch = launch_of(node);

	if (!node->uploaded && node->has_descriptor) {
		if (!node->written || node->written_enabled != node->enabled)
			descriptor_rewrite(&node->host, &launch);
		node->written = true;
		node->written_enabled = node->enabled;
		if (node->has_next)
			descriptor_set_next(&node->host, launch.context->gpu, node->fetches_ahead);
		launch_upload(&launch, &node->host);
		check_fetching(exec, node, launch.context->gpu);
		node->device = node->host;
		node->uploaded = true;
	}
}

#define UPLOAD_GROUP 17

/* Which node is the next to be uploaded after so many (hardware.md, "Graphs"): not in the order in which they run. */
static size_t upload_order(size_t count, bool has_front, size_t done)
{
	size_t place = done;

	if (has_front && count <= UPLOAD_GROUP / 4) {
		place = count - 1 - done;
	} else if (has_front && done < 2) {
		place = 1 - done;
	} else if (has_front) {
		size_t first = done - (done - 2) % UPLOAD_GROUP, end = first + UPLOAD_GROUP;

		place = (end < count ? end : count) - 1 - (done - first);
	}
	return place;
}

static bool has_front(CUgraphExec exec)
{
	return exec->count > 1 && exec->nodes[0].serial == 0;
}

HOOKED_2(cuGraphUpload, CUgraphExec, exec, CUstream, stream)
{
	CUresult result = exec ? context_result(stream_context(stream)) : CUDA_ERROR_INVALID_VALUE;

	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < exec->count; i++)
		upload(exec, &exec->nodes[upload_order(exec->count, has_front(exec), i)]);
	exec->is_refreshed = false;
	/* 0xb/3 comes for all nodes with their functions: also for disabled ones, in bodies that will not run, and when they are only
	 * uploaded. */
	for (struct exec_node *node = exec->nodes; node < exec->nodes + exec->count; node++) {
		if (!node->launch.function->is_unannounced)
			hook_graph_node_launch(node->launch.context, node->launch.function, node->host.words);
	}
	return CUDA_SUCCESS;
}

HOOKED_3(cuGraphInstantiateWithParams, CUgraphExec *, exec, CUgraph, graph, CUDA_GRAPH_INSTANTIATE_PARAMS *, parameters)
{
	CUresult result = instantiate(exec, graph);

	if (result == CUDA_SUCCESS && parameters->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		result = do_cuGraphUpload(*exec, parameters->hUploadStream);
	return result;
}

/* The instance becomes a child node of the graph that is captured. */
static CUresult capture(CUgraphExec exec, CUgraph into)
{
	CUgraph child;
	CUresult result = cuGraphCreate(&child, 0);

	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		if (exec->nodes[i].serial != 0 && exec->nodes[i].runs)
			result = graph_add_kernel(child, &exec->nodes[i].launch, NULL);
	}
	if (result == CUDA_SUCCESS)
		result = cuGraphAddChildGraphNode(NULL, into, NULL, 0, child);
	graph_destroy(child);
	return result;
}

/* A disabled node without a descriptor leaves nothing. */
static CUresult run_node(CUgraphExec exec, struct exec_node *node, bool *is_first)
{
	const struct launch as_run = launch_of(node);
	CUresult result = CUDA_SUCCESS;

	if (node->has_descriptor)
		engine_wait_for_room(as_run.context);
	if (node->has_descriptor && !engine_takes(&as_run, &node->device, NULL)) {
		if (!*is_first)
			gpu_time_follow();
		else if (has_front(exec))
			gpu_time_launch_front();
		else
			gpu_time_launch();
		*is_first = false;
		result = launch_run(&as_run, &node->device);
		engine_has_run(as_run.context);
	} else if (!node->has_descriptor && node->enabled) {
		result = launch_by(&node->host, &as_run);
	}
	return result;
}

static CUresult run(CUgraphExec exec, CUstream stream)
{
	CUresult result = do_cuGraphUpload(exec, stream);
	bool is_first = true;

	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		if (exec->nodes[i].runs)
			result = run_node(exec, &exec->nodes[i], &is_first);
	}
	return result;
}

HOOKED_2(cuGraphLaunch, CUgraphExec, exec, CUstream, stream)
{
	CUgraph capturing = capture_of(stream);

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	if (fault(FAULT_NO_LAUNCHES) || device_memory_for_graph(exec->allocated) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return capturing ? capture(exec, capturing) : run(exec, stream);
}

HOOKED_2(cuGraphUpload_ptsz, CUgraphExec, exec, CUstream, stream)
{
	return do_cuGraphUpload(exec, stream);
}

HOOKED_2(cuGraphLaunch_ptsz, CUgraphExec, exec, CUstream, stream)
{
	return do_cuGraphLaunch(exec, stream);
}

/* --- changing --------------------------------------------------------------------------------------------- */

/* The kernel node that was made from this one; NULL for a node of another graph, or of a destroyed one. */
static struct exec_node *find(CUgraphExec exec, CUgraphNode node)
{
	uint64_t serial = graph_serial(node);
	struct exec_node *found = NULL;

	for (size_t i = 0; i < exec->count && serial != 0 && !found; i++) {
		if (exec->nodes[i].serial == serial)
			found = &exec->nodes[i];
	}
	return found;
}

/* It is uploaded again, and so is the one before it, which no longer fetches its parameters ahead, unless it is the driver's own in
 * front. Where a callback changes them, each of them is uploaded by itself here, but for that one. */
static void expire(CUgraphExec exec, struct exec_node *node)
{
	bool is_ours = hook_is_in_callback();

	node->uploaded = false;
	exec->is_refreshed |= is_ours;
	if (node > exec->nodes && node[-1].has_next) {
		node[-1].fetches_ahead &= node[-1].serial == 0;
		node[-1].uploaded &= is_ours && node[-1].serial != 0;
	}
}

HOOKED_3(cuGraphNodeSetEnabled, CUgraphExec, exec, CUgraphNode, handle, unsigned int, value)
{
	struct exec_node *node = find(exec, handle);
	bool enabled = value != 0;

	if (fault(FAULT_SIGNALS))
		raise(SIGUSR1);
	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	if (node->enabled != enabled)
		expire(exec, node);
	node->enabled = enabled;
	/* As on an H200: it returns an error, and disables the node (hardware.md). */
	return !enabled && launch_cluster_size(&node->launch) > PORTABLE_CLUSTER ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned int *enabled)
{
	const struct exec_node *node = find(exec, handle);

	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	*enabled = node->enabled;
	return CUDA_SUCCESS;
}

static bool is_same_size(const struct dimensions *a, const struct dimensions *b)
{
	return a->x == b->x && a->y == b->y && a->z == b->z;
}

static bool is_same_launch(const struct launch *a, const struct launch *b)
{
	return a->function == b->function && is_same_size(&a->grid, &b->grid) &&
	       is_same_size(&a->block, &b->block) && is_same_size(&a->cluster, &b->cluster) &&
	       a->cooperative == b->cooperative && a->shared_bytes == b->shared_bytes &&
	       memcmp(a->arguments, b->arguments, sizeof a->arguments) == 0;
}

/* The same parameters cause no upload, others do (facts.md, "CUDA graphs"). A kernel stays one, however small a fill becomes. */
static void set_launch(CUgraphExec exec, struct exec_node *node, const struct launch *launch)
{
	struct launch new = *launch;

	if (new.function->is_unannounced && node->has_descriptor)
		new.function = node->launch.function;
	if (!is_same_launch(&node->launch, &new)) {
		node->launch = new;
		node->written = false;
		expire(exec, node);
	}
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	struct exec_node *node = find(exec, handle);
	struct launch launch;
	CUresult result = node ? graph_read_parameters(&launch, parameters) : CUDA_ERROR_INVALID_VALUE;

	if (result == CUDA_SUCCESS)
		set_launch(exec, node, &launch);
	return result;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct CUgraphExec_st *other = flatten(graph);
	CUresult result = CUDA_SUCCESS;

	if (!other)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (other->count != exec->count)
		result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++)
		set_launch(exec, &exec->nodes[i], &other->nodes[i].launch);
	*info = (CUgraphExecUpdateResultInfo){.result = result != CUDA_SUCCESS};
	do_cuGraphExecDestroy(other);
	return result;
}
