/* Graphs, as they are built. What becomes of them when they are instantiated is graph_exec.c's. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "launch.h"

struct CUgraphNode_st {
	uint64_t serial; /* never used again, unlike addresses */
	uint64_t origin; /* of the node that this one was cloned from; its own serial where of none */
	int type;        /* CU_GRAPH_NODE_TYPE_… */
	struct launch launch;      /* of a kernel node, and of a fill or copy, which is run like one */
	CUgraph *inside;           /* the graphs that it owns: a child, or the bodies of a conditional node */
	unsigned int inside_count;
	unsigned int chosen;       /* which of them is run; none where there are fewer */
	bool is_device_updatable;
	CUgraphNode next;
};

/* Nodes are in the order in which they were added, which is an order in which they can run. */
struct CUgraph_st {
	uint64_t serial; /* as a node's */
	CUgraphNode first;
	CUgraphNode *end; /* where the next node's address goes */
	CUgraph next_live;
};

/* Adds a node with this content, and takes over what is inside of it. `node` may be NULL. */
CUresult graph_add_node(CUgraph graph, const struct CUgraphNode_st *content, CUgraphNode *node);
CUresult graph_add_kernel(CUgraph graph, const struct launch *launch, CUgraphNode *node);

/* The launch that node parameters describe, in the current context. */
CUresult graph_read_parameters(struct launch *launch, const CUDA_KERNEL_NODE_PARAMS *parameters);

/* Calls `visit` for each node that has a launch, those of child graphs and bodies among them, in the order in which
 * they can run, and says whether it will. */
typedef void graph_visitor(CUgraphNode node, bool runs, void *data);
void graph_visit_launches(CUgraph graph, graph_visitor *visit, void *data);

bool graph_has_conditional(CUgraph graph);

/* The serial of a node of a graph that still exists; 0 for any other pointer. */
uint64_t graph_serial(CUgraphNode node);

#endif
