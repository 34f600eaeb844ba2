/*
 * The bodies of conditional nodes of CUDA graphs.
 *
 * The driver returns a node's bodies when the node is added (CUDA_CONDITIONAL_NODE_PARAMS), and has no call that
 * returns them later. So they are remembered here until the node or its graph is destroyed. If we do not hear of that
 * (a capture that failed), they are remembered until the handle is used again. A body can contain conditional nodes,
 * too: these are forgotten together with it.
 *
 * For any thread.
 */
#ifndef NVTASKSET_DRIVER_GRAPH_BODIES_H
#define NVTASKSET_DRIVER_GRAPH_BODIES_H

#include "cuda.h"

/* A conditional node has been added to a graph, or to a body. Without memory for it, it stays unknown. */
void graph_bodies_remember(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned int count);

/* Body `number` of a node, from 0 on; NULL after the last one, and for a node that is not known. */
CUgraph graph_bodies_of(CUgraphNode node, unsigned int number);

/* A node, or a graph, is about to be destroyed; it need not be known. */
void graph_bodies_forget_node(CUgraphNode node);
void graph_bodies_forget_graph(CUgraph graph);

/* In the child of a fork: forgets everything, see graph_instances_after_fork. */
void graph_bodies_after_fork(void);

#endif
