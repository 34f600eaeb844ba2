/*
 * What instances of CUDA graphs were made from.
 *
 * Nodes of an instance are uploaded again by their handles in the graph that was instantiated (docs/facts.md,
 * "CUDA graphs"), so such a graph must live as long as what was made of it: when the application destroys it earlier,
 * the driver is given an empty graph to destroy instead (docs/hardware.md), and the real one goes with the last
 * instance.
 *
 * Each instance has the number of what it was uploaded under, which is only ever raised. For any thread.
 */
#ifndef NVTASKSET_DRIVER_GRAPH_INSTANCES_H
#define NVTASKSET_DRIVER_GRAPH_INSTANCES_H

#include "cuda.h"
#include "graph_nodes.h"

#include <stdbool.h>
#include <stdint.h>

/* One has been made. False where there is no memory, or the driver does not tell its nodes: it is not known then. */
bool graph_instances_add(CUgraphExec exec, CUgraph graph, uint64_t number);

/* One is about to be destroyed; what is not known is fine. */
void graph_instances_remove(CUgraphExec exec);

/* A graph is about to be destroyed: what the driver shall destroy in its place. */
CUgraph graph_instances_destroy_graph(CUgraph graph);

/* A node is about to be destroyed, and all that lies in it. */
void graph_instances_lose_node(CUgraphNode node);

/* False where all instances in whose place this one may be are at the number: one load. */
bool graph_instances_may_be_older(CUgraphExec exec, uint64_t number);

/* Where an instance is older than the number, has it renewed, and that is its number. None of its nodes is destroyed
 * meanwhile. False where the instance is not known. */
typedef void graph_instances_renewer(CUgraphExec exec, const struct graph_nodes *nodes);
bool graph_instances_renew(CUgraphExec exec, uint64_t number, graph_instances_renewer *renew);

/* In the child of a fork: forgets all, which the parent's CUDA took with it, and with it what other threads were doing. */
void graph_instances_after_fork(void);

#endif
