/*
 * CUDA graphs that follow a changed partition.
 *
 * A node of an instantiated graph is uploaded once, and keeps the mask of that moment (FACTS 7). After a change we have
 * what can be a kernel uploaded again at the graph's next launch, by disabling and enabling it. That takes the nodes of
 * the graph that was instantiated, so such a graph must live as long as what was made of it: when the application
 * destroys it earlier, the driver is given an empty graph to destroy instead (docs/hardware.md), and the real one goes
 * with the last instance.
 *
 * The driver keeps a node's launch descriptor and uploads the same one again: what we disabled there is taken back as
 * soon as it has been uploaded, or the masks of all partitions that ever were would gather in it.
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
#include "qmd.h"
#include "segment.h"

/* A descriptor of a graph's node is about to be written, of a version that is known: it is put back at the end of the call. */
void graphs_remember(const struct qmd_family *family, void *qmd);

/* Before any call comes. */
void graphs_use(const struct segment *segment);

/* Before that, in a process that runs before we come: it may have graphs that we shall never know. They keep the whole
 * GPU; their launches are counted where the partition is, or has been made, another. */
void graphs_expect_older(void);

/* One of the calls of graphs begins, or has ended. */
void graphs_call_begins(const struct call *call);
void graphs_call_ended(const struct call *call);

/* In the child of a fork: forgets all graphs, which the parent's CUDA took with it, and with them what other threads were
 * doing. */
void graphs_after_fork(void);

#endif
