/*
 * The bodies of conditional nodes of CUDA graphs.
 *
 * The driver hands a node's bodies out when the node is added (CUDA_CONDITIONAL_NODE_PARAMS), and has no call that
 * tells them later: they are remembered here until the node is destroyed, or the graph that it lies in; where that is
 * not heard of (a capture that failed), until its handle comes again. A body can contain conditional nodes, too: what
 * is forgotten is forgotten with all that lies in it.
 *
 * For any thread.
 */
#ifndef NVTASKSET_DRIVER_GRAPH_BODIES_H
#define NVTASKSET_DRIVER_GRAPH_BODIES_H

#include "cuda.h"

/* A conditional node has been added to a graph, or to a body. Where there is no memory, nothing is known of it. */
void graph_bodies_remember(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned int count);

/* Body `number` of a node, from 0 on; NULL behind the last one. Of a node that nobody told us of there is none. */
CUgraph graph_bodies_of(CUgraphNode node, unsigned int number);

/* They are about to be destroyed; what is not known is fine. */
void graph_bodies_forget_node(CUgraphNode node);
void graph_bodies_forget_graph(CUgraph graph);

/* In the child of a fork: forgets all, see graph_instances_after_fork. */
void graph_bodies_after_fork(void);

#endif
