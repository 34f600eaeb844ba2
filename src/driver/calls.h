/*
 * Calls of the driver's API, as the driver announces them: their published CUPTI_DRIVER_TRACE_CBID_* numbers, and the
 * layout of their arguments. No other file knows these.
 */
#ifndef NVTASKSET_DRIVER_CALLS_H
#define NVTASKSET_DRIVER_CALLS_H

#include "cuda.h"
#include "gpu/qmd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a thread's calls, and those who hear of one, keep from its begin to its end. It belongs to the hook; each part belongs to
 * the file that it names. Calls nest: each clears only what it has set itself. */
struct frame {
	/* launch/launch.c: what was decided about this thread's last launch; stays from call to call */
	struct recent {
		CUcontext context;
		uint64_t epoch;                    /* EPOCH_NEVER: the next launch must be decided anew */
		uint64_t kept;                     /* it, outside of calls where the gate decides about these: for the next call */
		const struct qmd_release *release; /* of plain launches; NULL: none */
		qmd_disabler *disable;             /* NULL: the launch may use the whole GPU */
		struct qmd_mask mask;
		bool is_aside; /* others have a part of the partition for now */
	} recent;

	/* calls.h: what the calls say about the launches that they make; all 0 if they say nothing */
	bool uploads_nodes;     /* the launches are nodes of a graph */
	CUgraphExec exec;       /* the graph's instance; NULL while it is being made */
	CUstream stream;        /* that they go into, perhaps one that every context has (cuda.h) */
	struct qmd_shape shape; /* for a launch whose blocks may have to run at once */

	/* launch/graphs/graphs.c */
	uint64_t masks; /* their epoch at the call's begin; some calls that instantiate also upload */
	bool runs_once; /* what the call makes */
	/* launch/graphs/descriptors.h: what has been written */
	struct graph_descriptor *written;
	size_t written_count, written_room;
	/* launch/graphs/looking.c: when the call began; 0: nobody looks */
	uint64_t began_ns;

	/* launch/space/residency.h: what the driver gets in place of the program's, and the program in place of the driver's */
	CUlaunchConfig refused;
	CUresult refusal; /* CUDA_SUCCESS: it gets the driver's */
};

/* A call, at its begin or its end. */
struct call {
	int id; /* enum call_id */
	CUcontext context;
	void **arguments; /* one after the other; at its begin, they can be changed for the driver */
	CUresult *result; /* valid at its end; the program gets what is written there */
	struct frame *frame;
};

enum call_id {
	CALL_DEVICE_GET_ATTRIBUTE = 9,
	CALL_SYNCHRONIZE = 17,
	CALL_LAUNCH_OLDEST = 115, /* cuLaunch; like cuLaunchGrid, into the null stream */
	CALL_LAUNCH_GRID = 116,
	CALL_LAUNCH_GRID_ASYNC = 117,
	CALL_STREAM_CREATE = 124,
	CALL_STREAM_SYNCHRONIZE = 126,
	CALL_STREAM_DESTROY_OLD = 127,
	CALL_WAIT_EVENT = 295,
	CALL_LAUNCH = 307,
	CALL_IPC_GET_MEMORY = 328,
	CALL_IPC_OPEN_MEMORY = 329,
	CALL_IPC_GET_EVENT = 334,
	CALL_IPC_OPEN_EVENT = 335,
	CALL_STREAM_DESTROY = 326,
	CALL_ADD_CALLBACK = 346,
	CALL_STREAM_CREATE_WITH_PRIORITY = 367,
	CALL_ALLOC_MANAGED = 371,
	CALL_ATTACH_MEMORY = 377,
	CALL_MAX_POTENTIAL_BLOCK_SIZE = 384,
	CALL_WAIT_EVENT_PER_THREAD = 436,
	CALL_ADD_CALLBACK_PER_THREAD = 437,
	CALL_ATTACH_MEMORY_PER_THREAD = 438,
	CALL_LAUNCH_PER_THREAD = 442,
	CALL_MAX_POTENTIAL_BLOCK_SIZE_WITH_FLAGS = 452,
	CALL_ADVISE = 457,
	CALL_WAIT_VALUE_32 = 458,
	CALL_WAIT_VALUE_32_PER_THREAD = 459,
	CALL_BATCH = 462,
	CALL_BATCH_PER_THREAD = 463,
	CALL_PREFETCH = 467,
	CALL_PREFETCH_PER_THREAD = 468,
	CALL_WAIT_VALUE_64 = 473,
	CALL_WAIT_VALUE_64_PER_THREAD = 474,
	CALL_LAUNCH_COOPERATIVE = 477,
	CALL_LAUNCH_COOPERATIVE_PER_THREAD = 478,
	CALL_WAIT_SEMAPHORES = 492,
	CALL_WAIT_SEMAPHORES_PER_THREAD = 493,
	CALL_GRAPH_INSTANTIATE = 513,
	CALL_GRAPH_LAUNCH = 514,
	CALL_GRAPH_LAUNCH_PER_THREAD = 515,
	CALL_GRAPH_EXEC_DESTROY = 516,
	CALL_GRAPH_DESTROY = 517,
	CALL_GRAPH_NODE_DESTROY = 522,
	CALL_HOST_FUNCTION = 527,
	CALL_HOST_FUNCTION_PER_THREAD = 528,
	CALL_EXPORT_MEMORY = 554,
	CALL_IMPORT_MEMORY = 555,
	CALL_IPC_OPEN_MEMORY_2 = 567,
	CALL_GRAPH_INSTANTIATE_2 = 578,
	CALL_GRAPH_UPLOAD = 580,
	CALL_GRAPH_UPLOAD_PER_THREAD = 581,
	CALL_POOL_CREATE = 607,
	CALL_EXPORT_POOL = 613,
	CALL_IMPORT_POOL = 614,
	CALL_GRAPH_INSTANTIATE_WITH_FLAGS = 643,
	CALL_LAUNCH_EX = 652,
	CALL_LAUNCH_EX_PER_THREAD = 653,
	CALL_GRAPH_INSTANTIATE_WITH_PARAMS = 656,
	CALL_GRAPH_INSTANTIATE_WITH_PARAMS_PER_THREAD = 657,
	CALL_WAIT_VALUE_32_2 = 659,
	CALL_WAIT_VALUE_32_2_PER_THREAD = 660,
	CALL_WAIT_VALUE_64_2 = 661,
	CALL_WAIT_VALUE_64_2_PER_THREAD = 662,
	CALL_BATCH_2 = 667,
	CALL_BATCH_2_PER_THREAD = 668,
	CALL_MAX_POTENTIAL_CLUSTER_SIZE = 675,
	CALL_MAX_ACTIVE_CLUSTERS = 676,
	CALL_GRAPH_NODE_ADD = 712,
	CALL_ADVISE_2 = 715,
	CALL_PREFETCH_2 = 716,
	CALL_PREFETCH_2_PER_THREAD = 717,
	CALL_GRAPH_NODE_ADD_2 = 723,
	CALL_STREAM_CREATE_GREEN = 758,
	CALL_PREFETCH_BATCH = 784,
	CALL_PREFETCH_BATCH_PER_THREAD = 785,
	CALL_DISCARD_BATCH = 789,
	CALL_DISCARD_BATCH_PER_THREAD = 790,
	CALL_DISCARD_AND_PREFETCH = 791,
	CALL_DISCARD_AND_PREFETCH_PER_THREAD = 792,
	CALL_GET_DEFAULT_POOL = 801,
	CALL_GET_POOL = 802,
	CALL_SET_POOL = 803,
	CALLS_MAX = 1024
};

/* --- which calls ---------------------------------------------------------------------------------------------- */

/* The most frequent ones: a kernel, without further wishes. */
static inline bool calls_launch_kernel(int id)
{
	return id == CALL_LAUNCH || id == CALL_LAUNCH_PER_THREAD;
}

/* Whether a call launches a kernel outside of graphs; and whether its blocks may have to run at once. */
bool calls_launch(int id);
bool calls_may_launch_at_once(int id);

/* Whether a call, at its begin, is for memory whose pages move when they are touched, managed or the program's own; the first
 * asks for fewer calls. Whether it is for memory or events that other processes have, too. */
bool calls_may_use_managed_memory(int id);
bool calls_use_managed_memory(const struct call *call);
bool calls_share_memory(int id);

/* Whether a call waits for work. */
bool calls_synchronize(int id);

bool calls_create_stream(int id);
bool calls_destroy_stream(int id);

/* The calls about graphs that we use: they make an instance, launch or upload it, add a node, or destroy something. */
bool calls_are_of_graphs(int id);
bool calls_instantiate_graph(int id);
bool calls_launch_graph(int id);
bool calls_run_graph(int id); /* launches one, and does not only upload it */
bool calls_add_node(int id);

/* Whether a call about graphs may upload nodes. */
bool calls_upload_nodes(int id);

/* --- their arguments, in the driver's layout -------------------------------------------------------------------- */

struct call_attribute {
	int *value;
	int attribute;
	CUdevice device;
};

/* Queries of how much runs at once: the answer that we change is the first argument. */
struct call_occupancy {
	int *answer;
	CUfunction function;
	const CUlaunchConfig *config; /* only in CALL_MAX_ACTIVE_CLUSTERS */
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

/* What such a call asks for besides: CUDA_GRAPH_INSTANTIATE_FLAG_*. 0 if its flags say nothing of that. */
uint64_t calls_instantiate_flags(const struct call *call);

/* Calls that launch, upload or destroy an instance. */
struct call_exec {
	CUgraphExec exec;
};

/* Where a call that launches a graph puts it, perhaps into a stream that every context has (cuda.h). */
CUstream calls_stream_of_graph(const struct call *call);

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

/* The last argument of a call that adds a node. At the call's end, it has the bodies that the driver made. */
const CUgraphNodeParams *calls_node_parameters(const struct call *call);

/* The launch that a call asks for, if its blocks must run at once; otherwise false. */
struct launch_request {
	CUfunction function;
	CUstream stream;
	struct qmd_shape shape; /* its shared memory is what the launch adds to the function's own */
};
bool calls_read_request(const struct call *call, struct launch_request *request);

/* What a call runs that launches a kernel or a graph (calls_launch, calls_run_graph), and in which stream, perhaps one that
 * every context has (cuda.h). */
struct launched_work {
	const void *what; /* a function, or the instance of a graph; NULL if the call has no configuration */
	CUstream stream;
	uint64_t grid;    /* a number that other grids do not have; 0 where that is not known, and for graphs */
	bool is_graph, is_cooperative;
};
struct launched_work calls_read_work(const struct call *call);

/* Whether a call makes a stream wait for something that is no kernel of it; and which, perhaps one that every context has. */
bool calls_make_stream_wait(int id);
CUstream calls_waiting_stream(const struct call *call);

/* Makes such a call ask for an empty grid, which the driver refuses. */
void calls_refuse(const struct call *call);

/* How many blocks a cluster has: 1 if the launch does not ask for clusters. Also 1 if only the function's own
 * attributes ask for them; residency.c finds those in the descriptor. */
unsigned int calls_cluster_of(const CUlaunchConfig *config);

/* A call begins, or has ended: what it says about launches. */
void calls_enter(const struct call *call);
void calls_leave(const struct call *call);

#endif
