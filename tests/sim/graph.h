/* Graphs, as they are built. What becomes of them when they are instantiated is graph_exec.c's. */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "launch.h"

struct CUgraphNode_st {
	uint64_t serial; /* never used again, unlike addresses */
	uint64_t origin; /* of the node that this one was cloned from; its own serial where of none */
	int type;        /* CU_GRAPH_NODE_TYPE_… */
	struct launch launch; /* of a kernel node, and of a memset, which is one as well */
	CUgraph child;        /* of a child graph node: a clone, which it owns; of a conditional node: its body */
	bool in_body;         /* of a conditional node: an instance's cannot be told apart by this handle */
	bool is_device_updatable;
	CUgraphNode next;
};

/* Nodes are in the order in which they were added, which is an order in which they can run. */
struct CUgraph_st {
	CUgraphNode first;
	CUgraphNode *end; /* where the next node's address goes */
	bool is_body;     /* of a conditional node */
	CUgraph next_live;
};

/* Adds a node with this content. `node` may be NULL. */
CUresult graph_add_node(CUgraph graph, const struct CUgraphNode_st *content, CUgraphNode *node);
CUresult graph_add_kernel(CUgraph graph, const struct launch *launch, CUgraphNode *node);

/* The launch that node parameters describe, in the current context. */
CUresult graph_read_parameters(struct launch *launch, const CUDA_KERNEL_NODE_PARAMS *parameters);

/* Calls `visit` for each kernel node and memset, those of child graphs and bodies among them, in the order in which
 * they * can run. */
void graph_visit_kernels(CUgraph graph, void (*visit)(CUgraphNode node, void *data), void *data);

/* The serial of a node of a graph that still exists; 0 for any other pointer. */
uint64_t graph_serial(CUgraphNode node);

#endif
