/*
 * Instances of CUDA graphs, and the graphs that they were made from.
 *
 * To upload a node of an instance again, the driver needs the node's handle in the graph that was instantiated
 * (facts.md, "CUDA graphs"). So the graph must live as long as its instances. If the application destroys it
 * earlier, the driver gets an empty graph to destroy instead (hardware.md), and the real one is destroyed with its
 * last instance.
 *
 * Each instance has the number that it was uploaded under. The caller gives it, and it only rises. For any thread.
 */
#ifndef NVTASKSET_DRIVER_GRAPH_INSTANCES_H
#define NVTASKSET_DRIVER_GRAPH_INSTANCES_H

#include "cuda.h"
#include "graph_nodes.h"

#include <stdbool.h>
#include <stdint.h>

/* An instance has been made. False if there is no memory, or the driver does not list its nodes: it stays unknown
 * then. */
bool graph_instances_add(CUgraphExec exec, CUgraph graph, uint64_t number);

/* graph_nodes_run_once. False if the instance is not known. */
bool graph_instances_run_once(CUgraphExec exec);

/* An instance is about to be destroyed; it need not be known. */
void graph_instances_remove(CUgraphExec exec);

/* A graph is about to be destroyed. Returns the graph that the driver is to destroy in its place. */
CUgraph graph_instances_destroy_graph(CUgraph graph);

/* A node is about to be destroyed, with all nodes in it. */
void graph_instances_lose_node(CUgraphNode node);

/* Whether the instance may be older than the number. May be true although it is not. Costs one load. */
bool graph_instances_may_be_older(CUgraphExec exec, uint64_t number);

/* Calls `renew` with `data` for an instance that is older than the number, or has expired under it (`is_older` says which), and gives
 * it the number. None of its nodes is destroyed meanwhile. False if the instance is not known. */
typedef void graph_instances_renewer(CUgraphExec exec, const struct graph_nodes *nodes, bool is_older, void *data);
bool graph_instances_renew(CUgraphExec exec, uint64_t number, graph_instances_renewer *renew, void *data);

/* Its nodes are to be in the place of this number, where they are by default in that of 0. If that is another one, it moves: from
 * here on, it is older than any number; or it stays, unless it `may_move`, as does one that is not known. One that is there is found
 * without a lock. */
enum graph_move {
	GRAPH_IS_THERE,
	GRAPH_MOVES,
	GRAPH_STAYS
};
enum graph_move graph_instances_move(CUgraphExec exec, uint64_t where, bool may_move);

/* From here on, the instance is older than any number. */
void graph_instances_expire(CUgraphExec exec);

/* In the child of a fork: forgets everything. The parent's graphs do not exist there, and other threads may have been
 * in the middle of a change. */
void graph_instances_after_fork(void);

#endif
