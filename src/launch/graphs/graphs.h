/*
 * CUDA graphs that follow a changed partition.
 *
 * A node of an instantiated graph is uploaded once, and keeps the mask of that moment (facts.md, "CUDA graphs").
 * After a change, at the graph's next launch, we disable and enable each node that can be a kernel: the driver uploads
 * it again.
 *
 * Some do not follow, and are counted: nodes that the application has destroyed in the graph since, nodes that kernels
 * may update (another upload would undo that), launches by kernels, graphs that were instantiated before we were
 * loaded, and the bodies of conditional nodes that were added before we were loaded.
 *
 * While the partition stays the same, a launch of a graph costs one comparison.
 */
#ifndef NVTASKSET_LAUNCH_GRAPHS_GRAPHS_H
#define NVTASKSET_LAUNCH_GRAPHS_GRAPHS_H

#include "driver/calls.h"
#include "state/segment/segment.h"

/* Call it before any call is announced. */
void graphs_use(const struct segment *segment);

/* The process ran before we were loaded, and may have graphs that we never hear of. They keep the whole GPU: their
 * launches are counted if the partition restricts a GPU at graphs_use, or changes later. Call it before graphs_use. */
void graphs_expect_older(void);

/* A call about graphs (calls_are_of_graphs) begins, or has ended. */
void graphs_call_begins(const struct call *call);
void graphs_call_ended(const struct call *call);

#endif
