/*
 * The nodes of CUDA graphs: which there are, in child graphs and the bodies of conditional nodes too, and which of them
 * can be kernels that are uploaded again.
 *
 * Memsets and copies can be kernels, too (docs/hardware.md).
 */
#ifndef NVTASKSET_DRIVER_GRAPH_NODES_H
#define NVTASKSET_DRIVER_GRAPH_NODES_H

#include "cuda.h"

#include <stdbool.h>

struct graph_nodes {
	CUgraphNode *list; /* those that can be uploaded again */
	size_t count;
	size_t room;
	size_t out_of_reach; /* how many others may hold kernels: conditional nodes whose bodies are not known,
	                      * nodes that kernels update, which an upload would undo, and lost ones */
};

/* Adds those of a graph. False where there is no memory, or the driver does not tell. */
bool graph_nodes_collect(struct graph_nodes *nodes, CUgraph graph);
void graph_nodes_free(struct graph_nodes *nodes);

/* A node is about to be destroyed. What was made from it goes on to run it: it is out of reach from now on. */
void graph_nodes_lose(struct graph_nodes *nodes, CUgraphNode node);

/* Whether a node can be a kernel, so that it counts where it cannot be uploaded again. A copy can, unless the host's
 * memory is at one of its ends. */
bool graph_nodes_can_be_kernel(CUgraphNode node);

/* Calls `visit` for each node that lies in this one, whatever its depth, and then for this one. False where one of the
 * calls said so, there is no memory, or the driver does not tell; the others have been visited nevertheless. */
typedef bool graph_nodes_visitor(CUgraphNode node, int type, void *data);
bool graph_nodes_visit(CUgraphNode node, graph_nodes_visitor *visit, void *data);

#endif
