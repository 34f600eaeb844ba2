/*
 * Kernels of graphs while somebody looks (launch/account/timestamps.h).
 *
 * A kernel of a graph gets its release at the upload: graphs are uploaded again when somebody begins to look, as after
 * a change of the partition, and at the first launch after the last look. A graph may have more nodes than there are
 * cells: then the nodes take turns, with an upload for each turn.
 */
#ifndef NVTASKSET_LAUNCH_GRAPHS_TIMESTAMPS_H
#define NVTASKSET_LAUNCH_GRAPHS_TIMESTAMPS_H

#include "driver/calls.h"
#include "driver/hook.h"

#include <stdbool.h>

/* The node's descriptor is about to be changed, and will be restored: adds the release if somebody looks. */
void graph_timestamps_node(const struct launch *launch, unsigned int tpcs, struct qmd_change *change);

/* A call that launches an instance begins: before the decision about an upload. True if the instance must be uploaded,
 * for further nodes to get a turn. The call has ended. */
bool graph_timestamps_begins(const struct call *call, CUgraphExec exec);
void graph_timestamps_ended(const struct call *call, CUgraphExec exec);

/* All nodes of an instance will be uploaded again; the instance is about to be destroyed. */
void graph_timestamps_renewed(CUgraphExec exec);
void graph_timestamps_destroyed(CUgraphExec exec);

/* In the child of a fork: forgets the instances. */
void graph_timestamps_after_fork(void);

#endif
