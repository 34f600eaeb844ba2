/*
 * The nodes of CUDA graphs, also in child graphs and the bodies of conditional nodes, and which of them can be kernels
 * that are uploaded again. Memsets and copies can be kernels, too (hardware.md).
 */
#ifndef NVTASKSET_DRIVER_GRAPH_NODES_H
#define NVTASKSET_DRIVER_GRAPH_NODES_H

#include "cuda.h"

#include <stdbool.h>

struct graph_nodes {
	CUgraphNode *list; /* nodes that can be uploaded again */
	size_t count;
	size_t room;
	size_t conditionals; /* how many nodes have bodies, which run as often as the GPU decides */
	size_t out_of_reach; /* how many other nodes may have kernels: conditional nodes whose bodies are not known, nodes
	                      * that kernels update (an upload would undo that), and destroyed nodes */
};

/* Adds the nodes of a graph. False if there is no memory, or the driver does not list them. */
bool graph_nodes_collect(struct graph_nodes *nodes, CUgraph graph);
void graph_nodes_free(struct graph_nodes *nodes);

/* Whether every kernel of an instance with these nodes runs once at each launch by the program: it has neither bodies nor
 * nodes that kernels may update. */
bool graph_nodes_run_once(const struct graph_nodes *nodes);

/* A node is about to be destroyed. Instances of its graph still run it, but it cannot be uploaded again: it is out of
 * reach. */
void graph_nodes_lose(struct graph_nodes *nodes, CUgraphNode node);

/* Whether a node can be a kernel, and so must be counted if it cannot be uploaded again. A copy can be one unless it is
 * from or to host memory. */
bool graph_nodes_can_be_kernel(CUgraphNode node);

/* Calls `visit` for each node in this one, at any depth, and then for this one. False if one of the calls returned
 * false, there is no memory, or the driver does not list the nodes; the others are visited nevertheless. */
typedef bool graph_nodes_visitor(CUgraphNode node, int type, void *data);
bool graph_nodes_visit(CUgraphNode node, graph_nodes_visitor *visit, void *data);

/*
 * The bodies of conditional nodes.
 *
 * The driver returns a node's bodies when the node is added (CUDA_CONDITIONAL_NODE_PARAMS), and has no call that
 * returns them later. So they are remembered here until the node or its graph is destroyed. If we do not hear of that
 * (a capture that failed), they are remembered until the handle is used again. A body can contain conditional nodes,
 * too: these are forgotten together with it. For any thread.
 */

/* A conditional node has been added to a graph, or to a body. Without memory for it, it stays unknown. */
void graph_bodies_remember(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned int count);

/* A node, or a graph, is about to be destroyed; it need not be known. */
void graph_bodies_forget_node(CUgraphNode node);
void graph_bodies_forget_graph(CUgraph graph);

/* In the child of a fork: forgets everything, see graph_instances_after_fork. */
void graph_bodies_after_fork(void);

#endif
