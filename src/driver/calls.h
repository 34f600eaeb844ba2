/*
 * Calls of the driver's API, as it announces them: their published CUPTI_DRIVER_TRACE_CBID_* numbers, and where their
 * arguments stand. Nobody else knows them.
 */
#ifndef NVTASKSET_DRIVER_CALLS_H
#define NVTASKSET_DRIVER_CALLS_H

#include "cuda.h"
#include "gpu/qmd.h"

#include <stdbool.h>

/* A call, at its begin or its end. */
struct call {
	int id; /* enum call_id */
	CUcontext context;
	void **arguments; /* its own, one behind the other: what is written there at its begin is what it works with */
	CUresult *result; /* at its end; what is written there is what the program gets */
};

enum call_id {
	CALL_DEVICE_GET_ATTRIBUTE = 9,
	CALL_LAUNCH_OLDEST = 115, /* cuLaunch, cuLaunchGrid: into the null stream */
	CALL_LAUNCH_GRID = 116,
	CALL_LAUNCH_GRID_ASYNC = 117,
	CALL_STREAM_CREATE = 124,
	CALL_STREAM_DESTROY_OLD = 127,
	CALL_LAUNCH = 307,
	CALL_STREAM_DESTROY = 326,
	CALL_STREAM_CREATE_WITH_PRIORITY = 367,
	CALL_MAX_POTENTIAL_BLOCK_SIZE = 384,
	CALL_LAUNCH_PER_THREAD = 442,
	CALL_MAX_POTENTIAL_BLOCK_SIZE_WITH_FLAGS = 452,
	CALL_LAUNCH_COOPERATIVE = 477,
	CALL_LAUNCH_COOPERATIVE_PER_THREAD = 478,
	CALL_GRAPH_INSTANTIATE = 513,
	CALL_GRAPH_LAUNCH = 514,
	CALL_GRAPH_LAUNCH_PER_THREAD = 515,
	CALL_GRAPH_EXEC_DESTROY = 516,
	CALL_GRAPH_DESTROY = 517,
	CALL_GRAPH_NODE_DESTROY = 522,
	CALL_GRAPH_INSTANTIATE_2 = 578,
	CALL_GRAPH_UPLOAD = 580,
	CALL_GRAPH_UPLOAD_PER_THREAD = 581,
	CALL_GRAPH_INSTANTIATE_WITH_FLAGS = 643,
	CALL_LAUNCH_EX = 652,
	CALL_LAUNCH_EX_PER_THREAD = 653,
	CALL_GRAPH_INSTANTIATE_WITH_PARAMS = 656,
	CALL_GRAPH_INSTANTIATE_WITH_PARAMS_PER_THREAD = 657,
	CALL_MAX_POTENTIAL_CLUSTER_SIZE = 675,
	CALL_MAX_ACTIVE_CLUSTERS = 676,
	CALL_GRAPH_NODE_ADD = 712,
	CALL_GRAPH_NODE_ADD_2 = 723,
	CALL_STREAM_CREATE_GREEN = 758,
	CALLS_MAX = 1024
};

/* --- which calls ---------------------------------------------------------------------------------------------- */

/* Those that launch a kernel outside of graphs; of them, those that may ask for blocks that run at once. */
bool calls_launch(int id);
bool calls_may_launch_at_once(int id);

bool calls_create_stream(int id);
bool calls_destroy_stream(int id);

/* Those of graphs that we have to do with. They make an instance, launch or upload it, add a node, or destroy something. */
bool calls_are_of_graphs(int id);
bool calls_instantiate_graph(int id);
bool calls_launch_graph(int id);
bool calls_add_node(int id);

/* Those of graphs that may upload nodes. */
bool calls_upload_nodes(int id);

/* --- their arguments, as the driver has them -------------------------------------------------------------------- */

struct call_attribute {
	int *value;
	int attribute;
	CUdevice device;
};

/* Of the calls that ask how much runs at once, the answer in question comes first. */
struct call_occupancy {
	int *answer;
	CUfunction function;
	const CUlaunchConfig *config; /* of CALL_MAX_ACTIVE_CLUSTERS */
};

struct call_create_stream {
	CUstream *stream;
};

struct call_destroy_stream {
	CUstream stream;
};

struct call_instantiate {
	CUgraphExec *exec;
	CUgraph graph;
};

/* Launches, uploads and destroys an instance. */
struct call_exec {
	CUgraphExec exec;
};

struct call_destroy_graph {
	CUgraph graph;
};

struct call_destroy_node {
	CUgraphNode node;
};

struct call_add_node {
	CUgraphNode *node;
	CUgraph graph;
};

/* The last of a call that adds a node; the driver has told the bodies in them. */
const CUgraphNodeParams *calls_node_parameters(const struct call *call);

/* What a call that may launch at once asks for. False where it has no configuration. */
struct launch_request {
	CUfunction function;
	CUstream stream;
	struct qmd_shape shape; /* shared memory: of what is asked for at the launch alone */
};
bool calls_read_request(const struct call *call, struct launch_request *request);

/* Makes such a call ask for an empty grid, which the driver refuses. `room` lasts until the call has ended. */
void calls_refuse(const struct call *call, CUlaunchConfig *room);

/* The blocks of a cluster that a launch asks for: 1 where it asks for none, and where the function alone says how many,
 * which is left to the check of the descriptor. */
unsigned int calls_cluster_of(const CUlaunchConfig *config);

/* What the calls that a thread is in say about launches that come from them; all 0 where they say nothing. */
struct launch_origin {
	bool uploads_nodes;     /* they are nodes of a graph */
	CUstream stream;        /* which they go into, or one of those that every context has (cuda.h) */
	struct qmd_shape shape; /* of one that may have to run at once */
};

/* A call begins, and has ended. One within another takes nothing back that is not its own. */
void calls_enter(const struct call *call, struct launch_origin *origin);
void calls_leave(const struct call *call, struct launch_origin *origin);

#endif
