/*
 * Instances of CUDA graphs, and the graphs of the instances.
 *
 * To upload a node of an instance again, the driver needs the node's handle in the instantiated graph (facts.md, "CUDA
 * graphs"). So the graph must live as long as the instances. If the application destroys the graph earlier, the driver
 * gets an empty graph to destroy instead (hardware.md), and the real graph is destroyed with the last instance.
 *
 * Each instance has a number: the caller's epoch of masks (launch/space/epoch.h) at the last upload, which only rises.
 * For any thread.
 */
#pragma once

#include "cuda.h"

#include <stdbool.h>

/* --- graph_nodes.c ------------------------------------------------------------------------------------------------ */

/*
 * The nodes of CUDA graphs, also in child graphs and the bodies of conditional nodes; and the nodes that can be kernels
 * to upload again. Memsets and copies can be kernels, too (hardware.md).
 */

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

/* --- instances ---------------------------------------------------------------------------------------------------- */

/* An instance has been made. False without memory or a list of the nodes: the instance stays unknown then. */
bool graph_instances_add(CUgraphExec exec, CUgraph graph, uint64_t number);

/* graph_nodes_run_once. False if the instance is not known. */
bool graph_instances_run_once(CUgraphExec exec);

/* An instance, known or not, is about to be destroyed. */
void graph_instances_remove(CUgraphExec exec);

/* A graph is about to be destroyed. Returns the graph for the driver to destroy: mostly `graph`; an empty graph while
 * `graph` has instances; NULL, which the driver refuses, if the program has destroyed `graph` before. */
CUgraph graph_instances_destroy_graph(CUgraph graph);

/* A node is about to be destroyed, with all nodes inside. */
void graph_instances_lose_node(CUgraphNode node);

/* Whether the instance may be older than the number; perhaps true for a newer instance. Costs one load. */
bool graph_instances_may_be_older(CUgraphExec exec, uint64_t number);

/* Calls `renew` with `data` for an instance that is older than the number (`is_older`), or has expired, and gives the
 * instance the number. No node of the instance is destroyed meanwhile. False if the instance is not known. */
typedef void graph_instances_renewer(CUgraphExec exec, const struct graph_nodes *nodes, bool is_older, void *data);
bool graph_instances_renew(CUgraphExec exec, uint64_t number, graph_instances_renewer *renew, void *data);

/* The nodes are to run on the set of TPCs with the number `where` (a hash by the caller; 0: the partition). If the
 * nodes are elsewhere, the result is GRAPH_MOVES, and the next graph_instances_renew uploads them again; GRAPH_STAYS
 * without `may_move`, or for an unknown instance. No lock for an instance that is there. */
enum graph_move {
	GRAPH_IS_THERE,
	GRAPH_MOVES,
	GRAPH_STAYS
};
enum graph_move graph_instances_move(CUgraphExec exec, uint64_t where, bool may_move);

/* From here on, until the next graph_instances_renew, the instance has expired. */
void graph_instances_expire(CUgraphExec exec);

/* In the child of a fork: forgets everything. The parent's graphs do not exist there, and a thread of the parent may
 * have been in the middle of a change. */
void graph_instances_after_fork(void);
