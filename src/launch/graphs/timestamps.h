/*
 * Kernels of graphs while somebody looks (launch/account/timestamps.h).
 *
 * A kernel of a graph gets its release when it is uploaded: graphs are uploaded again when somebody begins to look, as
 * after a change of the partition, and at their first launch after nobody looks any more. There are fewer cells than a
 * graph may have nodes: then these take turns, and the graph is uploaded again for each.
 */
#ifndef NVTASKSET_LAUNCH_GRAPHS_TIMESTAMPS_H
#define NVTASKSET_LAUNCH_GRAPHS_TIMESTAMPS_H

#include "driver/calls.h"
#include "driver/hook.h"

#include <stdbool.h>

/* The node's descriptor is about to be changed, and will be restored: if somebody looks, this adds the release. */
void graph_timestamps_node(const struct launch *launch, unsigned int tpcs, struct qmd_change *change);

/* A call that launches an instance begins: before it is decided whether the instance is uploaded again. True if it must
 * be, for other nodes to get their turn. It has ended. */
bool graph_timestamps_begins(const struct call *call, CUgraphExec exec);
void graph_timestamps_ended(const struct call *call, CUgraphExec exec);

/* All nodes of an instance will be uploaded again; it is about to be destroyed. */
void graph_timestamps_renewed(CUgraphExec exec);
void graph_timestamps_destroyed(CUgraphExec exec);

/* In the child of a fork: forgets the instances. */
void graph_timestamps_after_fork(void);

#endif
