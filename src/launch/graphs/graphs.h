/*
 * CUDA graphs that follow a changed partition.
 *
 * A node of an instantiated graph is uploaded once, and keeps the mask of that moment (facts.md, "CUDA graphs"). After
 * a change, at the graph's next launch, we disable and enable each node that can be a kernel, for another upload.
 *
 * Some kernels do not follow, and are counted: nodes that the application has destroyed in the graph since, nodes that
 * kernels may update (an upload would undo the update), launches by kernels, and graphs instantiated or bodies of
 * conditional nodes added before we were loaded. A driver from before CUDA 11.6 uploads no node again: after a change,
 * each launch of a graph is counted.
 *
 * While the partition stays the same, a launch of a graph costs one comparison.
 */
#pragma once

#include "driver/calls.h"
#include "state/segment/segment.h"

/* Call this before any call is announced. */
void graphs_use(const struct segment *segment);

/* The process ran before we were loaded, and may have graphs unknown to us, which keep the whole GPU: launches of
 * unknown graphs are counted if the partition restricts a GPU at graphs_use, or changes later. Call this before
 * graphs_use. */
void graphs_expect_older(void);

/* A call about graphs (calls_are_of_graphs) begins, or has ended. */
void graphs_call_begins(const struct call *call);
void graphs_call_ended(const struct call *call);
