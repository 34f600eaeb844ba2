/* Graphs before they are instantiated; graph_exec.c has their instances. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "launch.h"

struct CUgraphNode_st {
	uint64_t serial; /* never used again, unlike addresses */
	int type;        /* CU_GRAPH_NODE_TYPE_… */
	struct launch launch;      /* of a kernel node, or of a fill or copy, which runs like a kernel */
	CUgraph *inside;           /* the graphs that it owns: a child, or the bodies of a conditional node */
	unsigned int inside_count;
	unsigned int chosen;       /* the one that runs; none if there are fewer */
	bool is_device_updatable;
	uint64_t allocated; /* bytes, of an allocating node */
	CUgraphNode next;
};

/* Nodes are in the order in which they were added, which is an order in which they can run. */
struct CUgraph_st {
	uint64_t serial; /* never used again, like a node's */
	CUgraphNode first;
	CUgraphNode *end; /* where the next node's address goes */
	CUgraph next_live;
};

/* Adds a node with this content, and takes over the graphs inside it. `node` may be NULL. */
CUresult graph_add_node(CUgraph graph, const struct CUgraphNode_st *content, CUgraphNode *node);
CUresult graph_add_kernel(CUgraph graph, const struct launch *launch, CUgraphNode *node);

/* CUDA_ERROR_INVALID_VALUE if there is no such graph. */
CUresult graph_destroy(CUgraph graph);

/* The launch that node parameters describe, in the current context. */
CUresult graph_read_parameters(struct launch *launch, const CUDA_KERNEL_NODE_PARAMS *parameters);

/* Calls `visit` for each node that has a launch, also in child graphs and bodies, in an order in which they can run.
 * `runs` says whether the graph will run; and to `visit`, whether the node will. */
typedef void graph_visitor(CUgraphNode node, bool runs, void *data);
void graph_visit_launches(CUgraph graph, bool runs, graph_visitor *visit, void *data);

bool graph_has_conditional(CUgraph graph);

/* The bytes allocated by a graph's nodes, and by graphs inside. */
uint64_t graph_allocated(CUgraph graph);

/* The serial of a node of a graph that still exists; 0 for any other pointer. */
uint64_t graph_serial(CUgraphNode node);

#endif
