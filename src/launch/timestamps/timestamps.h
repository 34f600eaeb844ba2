/*
 * The times at which kernels end, while somebody looks. The way of such a time:
 *
 *   1. A watcher begins a look (state/segment/lease.h), or the process itself (timestamps_want).
 *   2. Each context has a ring of cells, registered before its first launch (driver/releases.h). The ring lies in
 *      memory for watchers to read (state/kernels/timestamps.h; timestamps_layout.h has the layout).
 *   3. A launch gets the next cell, a record beside the cell, and another release, in slot 1 of its descriptor
 *      (launches.c).
 *   4. A kernel of a graph gets its release at the upload (nodes.c): graphs are uploaded again when somebody begins to
 *      look, as after a change of the partition, and at the first launch after the last look. A graph may have more
 *      nodes than there are cells: then the nodes take turns, with an upload for each turn.
 *   5. At the end of the kernel, the GPU writes number and time into the cell.
 *   6. Watchers read the ring (state/kernels/timestamps_read.h) and estimate busy time and kernels (monitor/monitor.h).
 *      The process reads single cells for its own launches (launch/queued.h, time/gate/in_flight.h).
 *
 * While nobody looks, launches are as fast as without: the question is asked only where launches are decided anew.
 */
#pragma once

#include "driver/calls.h"
#include "driver/hook.h"
#include "state/kernels/timestamps.h"
#include "state/segment/segment.h"

/* From here on, looks are announced in this segment. Only while no thread launches. */
void timestamps_use(const struct segment *segment);

/* From here on the process itself looks, or no more. */
void timestamps_want(bool wanted);

/* Whether somebody looks. In the launch path. */
bool timestamps_are_on(void);

/* The launch's mask is in the descriptor, for `tpcs` TPCs; 0: not known. Says whether somebody looks; then also writes
 * the release, if possible. Returns the launch's cell; number 0: no release. */
struct timestamps_cell timestamps_of_launch(const struct launch *launch, unsigned int tpcs, bool *is_on);

/* A stream's name in timestamps. The stream may be a stream of every context (driver/cuda.h). */
uint64_t timestamps_stream(const struct frame *frame, CUstream stream);

/* For nodes.c: where a release can be written, or NULL; has the function's name written, once. */
const struct qmd_place *timestamps_place(const struct launch *launch);
void timestamps_write_name(struct timestamps *timestamps, CUfunction function);

/* --- kernels of graphs -------------------------------------------------------------------------------------------- */

/* The node's descriptor is about to be changed, and will be restored: adds the release if somebody looks. */
void timestamps_graph_node(const struct launch *launch, unsigned int tpcs, struct qmd_change *change);

/* A call that launches an instance begins: before the decision about an upload. True if the instance must be uploaded,
 * for further nodes to get a turn. The call has ended. */
bool timestamps_graph_begins(const struct call *call, CUgraphExec exec);
void timestamps_graph_ended(const struct call *call, CUgraphExec exec);

/* All nodes of an instance will be uploaded again; the instance is about to be destroyed. */
void timestamps_graph_renewed(CUgraphExec exec);
void timestamps_graph_destroyed(CUgraphExec exec);

/* In the child of a fork: forgets the instances. */
void timestamps_graphs_after_fork(void);
