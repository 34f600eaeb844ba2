/* Graphs, as they are built. What becomes of them when they are instantiated is graph_exec.c's. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "launch.h"

struct CUgraphNode_st {
	uint64_t serial; /* never used again, unlike addresses */
	uint64_t origin; /* of the node that this one was cloned from; its own serial where of none */
	int type;        /* CU_GRAPH_NODE_TYPE_… */
	struct launch launch; /* of a kernel node */
	CUgraph child;        /* of a child graph node: a clone, which it owns */
	CUgraphNode next;
};

/* Nodes are in the order in which they were added, which is an order in which they can run. */
struct CUgraph_st {
	CUgraphNode first;
	CUgraphNode *end; /* where the next node's address goes */
	CUgraph next_live;
};

/* `node` may be NULL. */
CUresult graph_add_kernel(CUgraph graph, const struct launch *launch, CUgraphNode *node);

/* The launch that node parameters describe, in the current context. */
CUresult graph_read_parameters(struct launch *launch, const CUDA_KERNEL_NODE_PARAMS *parameters);

/* Calls `visit` for each kernel node, those of child graphs among them, in the order in which they can run. */
void graph_visit_kernels(CUgraph graph, void (*visit)(CUgraphNode node, void *data), void *data);

/* The serial of a node of a graph that still exists; 0 for any other pointer. */
uint64_t graph_serial(CUgraphNode node);

#endif
