#include "graphs.h"

#include "counts.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/graph_instances.h"
#include "driver/releases.h"
#include "launch/account/account.h"
#include "launch/account/violation.h"
#include "launch/space/bells.h"
#include "launch/space/epoch.h"
#include "launch/timestamps/timestamps.h"

static bool expects_older;
static atomic_bool some_are_forgotten; /* for lack of memory */
static struct segment own;
static bool some_are_unknown; /* graphs with nodes that we cannot upload again */
static uint64_t kept_edit;    /* the last edit with the partition that nodes of unknown graphs keep; 0: no edit */

void graphs_expect_older(void)
{
	expects_older = true;
}

/* Older graphs keep the whole GPU, and newer graphs of a driver that uploads no node again, the present partition. */
void graphs_use(const struct segment *segment)
{
	struct segment_revision revision;
	uint64_t number;

	own = *segment;
	some_are_unknown = expects_older || !driver_has_graphs();
	bool keep_present = segment_read(segment, &revision, &number) && (!expects_older || revision.count == 0);

	kept_edit = keep_present ? number - segment_raised(segment) : 0;
}

/* A node runs outside the partition, or may. */
static void count_stale(void)
{
	violation_note(SEGMENT_STALE_GRAPH);
}

/* --- refreshing -------------------------------------------------------------------------------------------------- */

/* Makes the driver upload the node again. For a kernel with a non-portable cluster size, the driver reports an error
 * and disables the node nevertheless (hardware.md). So the node is always enabled again, or the program would lose
 * a kernel. */
static CUresult toggle(CUgraphExec exec, CUgraphNode node)
{
	CUresult disabled = driver.graph_node_set_enabled(exec, node, false);
	CUresult result = driver.graph_node_set_enabled(exec, node, true);

	return result == CUDA_SUCCESS && disabled != CUDA_ERROR_INVALID_CLUSTER_SIZE ? disabled : result;
}

/* A disabled node stays disabled: enabling uploads the node. Returns whether a kernel may be left as before. */
static bool refresh_node(CUgraphExec exec, CUgraphNode node)
{
	unsigned int enabled = 0;
	CUresult result = driver.graph_node_get_enabled(exec, node, &enabled);

	if (result == CUDA_SUCCESS && enabled)
		result = toggle(exec, node);
	if (result == CUDA_SUCCESS)
		account_refresh();
	return result != CUDA_SUCCESS && graph_nodes_can_be_kernel(node);
}

/* If only the gate has changed, a node left as before is inside the partition: launches that the gate cannot call back
 * go only there. */
static void refresh(CUgraphExec exec, const struct graph_nodes *nodes, bool masks_changed, void *frame)
{
	size_t left = nodes->out_of_reach;

	((struct frame *)frame)->refreshes = true;
	timestamps_graph_renewed(exec);
	for (size_t i = 0; i < nodes->count; i++)
		left += refresh_node(exec, nodes->list[i]);
	for (size_t i = 0; i < left && masks_changed; i++)
		count_stale();
}

/* Whether unknown graphs may be outside the partition: the partition has changed since graphs_use (not by a look), or
 * restricted a GPU already, and older graphs have the whole GPU. */
static bool unknown_are_stale(uint64_t masks)
{
	return some_are_unknown && masks - segment_raised(&own) > kept_edit;
}

static void launch_begins(CUgraphExec exec, struct frame *frame)
{
	uint64_t masks = frame->masks;

	if ((graph_instances_may_be_older(exec, masks) || unknown_are_stale(masks)) &&
	    !graph_instances_renew(exec, masks, refresh, frame) && unknown_are_stale(masks))
		count_stale();
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

static bool is_made_for_kernels(const struct call *call)
{
	return calls_instantiate_flags(call) & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
}

static bool runs_once(CUgraph graph)
{
	struct graph_nodes nodes = {.list = NULL};
	bool run_once = graph_nodes_collect(&nodes, graph) && graph_nodes_run_once(&nodes);

	graph_nodes_free(&nodes);
	return run_once;
}

/* If the call uploads nodes, too, the way to count must be known before. */
static void instance_begins(const struct call *call)
{
	bool uploads = calls_instantiate_flags(call) & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;

	call->frame->runs_once = uploads && !is_made_for_kernels(call) &&
	                         runs_once(((const struct call_instantiate *)call->arguments)->graph);
}

/* Launches of a graph by kernels are not announced: all count once, here. */
static void instantiated(const struct call *call)
{
	const struct call_instantiate *made = (const struct call_instantiate *)call->arguments;
	CUgraphExec exec = *made->exec;

	if (!graph_instances_add(exec, made->graph, call->frame->masks))
		count_stale();
	if (is_made_for_kernels(call))
		count_stale();
	if (!graph_counts_add(exec, !is_made_for_kernels(call) && graph_instances_run_once(exec)))
		atomic_store(&some_are_forgotten, true);
	graph_counts_uploaded(exec, call->frame);
	timestamps_graph_destroyed(exec); /* an old instance with the same handle */
}

static void node_added(const struct call *call)
{
	const struct call_add_node *arguments = (const struct call_add_node *)call->arguments;
	const CUgraphNodeParams *parameters = calls_node_parameters(call);

	if (parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		graph_bodies_remember(arguments->graph, *arguments->node, parameters->conditional.phGraph_out,
		                      parameters->conditional.size);
}

/* The place for kernels of the launched graph; NULL: nowhere, or the call launches no graph. */
static struct counts_place *place_of(const struct call *call)
{
	const struct releases *releases = calls_run_graph(call->id) ? contexts_releases(call->context) : NULL;

	return releases ? releases->place : NULL;
}

/* Uploads count even if the call failed. */
static void count_kernels(const struct call *call, CUgraphExec exec)
{
	/* A captured launch becomes a node of another graph. The legacy stream is never captured. */
	bool runs = calls_run_graph(call->id) && *call->result == CUDA_SUCCESS &&
	            !driver_captures(calls_stream_of_graph(call));

	graph_counts_uploaded(exec, call->frame);
	if (!graph_counts_call_ended(exec, runs) && runs)
		account_unknown_graph(call->context,
		                      atomic_load(&some_are_forgotten) ? COUNTS_NO_MEMORY : COUNTS_OLDER);
}

void graphs_call_begins(const struct call *call)
{
	struct call_destroy_graph *destroyed = (struct call_destroy_graph *)call->arguments;
	CUgraphExec exec = ((const struct call_exec *)call->arguments)->exec; /* of calls about an instance */
	struct counts_place *place = place_of(call);

	/* Readers see that the graph is about to run: the kernels count after the call, and may have run by then. */
	if (place) {
		counts_graph_begins(place);
		bells_ring();
	}
	/* First: may raise the epoch of masks. */
	if (calls_use_instance(call->id) && timestamps_graph_begins(call, exec))
		graph_instances_expire(exec);
	call->frame->masks = epoch_of_masks();
	if (calls_instantiate_graph(call->id)) {
		instance_begins(call);
	} else if (calls_use_instance(call->id)) {
		launch_begins(exec, call->frame);
	} else if (call->id == CALL_GRAPH_EXEC_DESTROY) {
		graph_instances_remove(exec);
		graph_counts_remove(exec);
		timestamps_graph_destroyed(exec);
	} else if (call->id == CALL_GRAPH_DESTROY) {
		destroyed->graph = graph_instances_destroy_graph(destroyed->graph);
	} else if (call->id == CALL_GRAPH_NODE_DESTROY) {
		graph_instances_lose_node(((const struct call_destroy_node *)call->arguments)->node);
	}
}

void graphs_call_ended(const struct call *call)
{
	bool is_done = *call->result == CUDA_SUCCESS;
	struct counts_place *place = place_of(call);

	if (calls_use_instance(call->id))
		count_kernels(call, ((const struct call_exec *)call->arguments)->exec);
	if (place)
		counts_graph_ended(place);
	else if (calls_instantiate_graph(call->id) && is_done &&
	         ((const struct call_instantiate *)call->arguments)->exec)
		instantiated(call);
	graph_counts_restore(call->frame);
	if (calls_use_instance(call->id)) {
		call->frame->refreshes = false;
		timestamps_graph_ended(call, ((const struct call_exec *)call->arguments)->exec);
	}
	if (calls_add_node(call->id) && is_done)
		node_added(call);
}
