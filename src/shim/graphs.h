/*
 * CUDA graphs that follow a changed partition.
 *
 * A node of an instantiated graph is uploaded once, and keeps the mask of that moment (docs/facts.md, "CUDA graphs").
 * After a change we have what can be a kernel uploaded again at the graph's next launch, by disabling and enabling it.
 *
 * Out of reach, and counted, are: nodes that the application has destroyed in the graph since, nodes that kernels may
 * change (uploading them again would undo that), launches by kernels, graphs that were instantiated before we came, and
 * the bodies of conditional nodes that were added before.
 *
 * While the partition stays the same, a launch of a graph costs one comparison.
 */
#ifndef NVTASKSET_SHIM_GRAPHS_H
#define NVTASKSET_SHIM_GRAPHS_H

#include "driver/calls.h"
#include "state/segment.h"

/* Before any call comes. */
void graphs_use(const struct segment *segment);

/* Before that, in a process that runs before we come: it may have graphs that we shall never know. They keep the whole
 * GPU; their launches are counted where the partition is, or has been made, another. */
void graphs_expect_older(void);

/* One of the calls of graphs begins, or has ended. */
void graphs_call_begins(const struct call *call);
void graphs_call_ended(const struct call *call);

#endif
