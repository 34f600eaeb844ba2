/*
 * The nodes of CUDA graphs, also in child graphs and the bodies of conditional nodes; and the nodes that can be kernels
 * to upload again. Memsets and copies can be kernels, too (hardware.md).
 */
#ifndef NVTASKSET_DRIVER_GRAPH_NODES_H
#define NVTASKSET_DRIVER_GRAPH_NODES_H

#include "cuda.h"

#include <stdbool.h>

struct graph_nodes {
	CUgraphNode *list; /* nodes that can be uploaded again */
	size_t count;
	size_t room;
	size_t conditionals; /* nodes with bodies, which run as often as the GPU decides */
	/* May have kernels: unknown bodies, nodes updated by kernels (an upload undoes updates), destroyed nodes. */
	size_t out_of_reach;
};

/* Adds the nodes of a graph. False without memory, or if the driver does not list the nodes. */
bool graph_nodes_collect(struct graph_nodes *nodes, CUgraph graph);
void graph_nodes_free(struct graph_nodes *nodes);

/* Whether every kernel of an instance with these nodes runs once at each launch by the program: there are neither
 * bodies nor nodes that kernels may update. */
bool graph_nodes_run_once(const struct graph_nodes *nodes);

/* A node is about to be destroyed. Instances of the graph still run the node, but no upload is possible any more. */
void graph_nodes_lose(struct graph_nodes *nodes, CUgraphNode node);

/* Whether a node can be a kernel, and so must be counted if it cannot be uploaded again. A copy can be a kernel, unless
 * from or to host memory. */
bool graph_nodes_can_be_kernel(CUgraphNode node);

/* Calls `visit` for each node inside of `node`, at any depth, and then for `node`. False if a call returned false,
 * without memory, or if the driver does not list the nodes; the remaining nodes are visited nevertheless. */
typedef bool graph_nodes_visitor(CUgraphNode node, int type, void *data);
bool graph_nodes_visit(CUgraphNode node, graph_nodes_visitor *visit, void *data);

/*
 * The bodies of conditional nodes.
 *
 * The driver returns a node's bodies when the node is added (CUDA_CONDITIONAL_NODE_PARAMS), and no call returns the
 * bodies later. So bodies are remembered until the node or the graph is destroyed; without an announcement (a failed
 * capture), until the handle is used again. Conditional nodes in a body are forgotten with the body. For any thread.
 */

/* A conditional node has been added to a graph, or to a body. Without memory, the node stays unknown. */
void graph_bodies_remember(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned int count);

/* A node or a graph, known or not, is about to be destroyed. */
void graph_bodies_forget_node(CUgraphNode node);
void graph_bodies_forget_graph(CUgraph graph);

/* In the child of a fork: forgets everything, see graph_instances_after_fork. */
void graph_bodies_after_fork(void);

#endif
