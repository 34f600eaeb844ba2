/*
 * How many kernels each launch of a graph has.
 *
 * A launch does not announce its kernels, but the upload of a node does, at the first launch of an instance and after a
 * change. Each node has a descriptor of its own, by whose address it is known here. So as many kernels are launched as
 * there are descriptors, without those of kernels of the driver's own, which stand in front, or for a disabled node.
 *
 * A fill that was no kernel when the instance was made, and that an update has made large, has no such descriptor: each
 * launch announces it anew (docs/hardware.md, "Graphs"). All descriptors of an instance are there when it has been
 * uploaded for the first time, so what comes with others is such a kernel, and counts for that launch.
 *
 * Some instances do not run each kernel once at each launch by the program: those with bodies, or that kernels launch or
 * update. Their kernels count when they end (COUNTS_UNHEARD), and their launches count nothing.
 *
 * As with the driver itself, one thread at a time uses an instance.
 */
#ifndef NVTASKSET_LAUNCH_GRAPHS_COUNTS_H
#define NVTASKSET_LAUNCH_GRAPHS_COUNTS_H

#include "descriptors.h"
#include "driver/cuda.h"
#include "state/kernels/counts.h"

#include <stdbool.h>

/* An instance has been made. `run_once`: each kernel runs once at each launch. False if there is no memory: it stays
 * unknown then. */
bool graph_counts_add(CUgraphExec exec, bool run_once);

/* It is about to be destroyed; it need not be known. */
void graph_counts_remove(CUgraphExec exec);

/* How nodes count that a call uploads now, into an instance that it may be making. In the launch path: waits for nothing. */
enum counts_kind graph_counts_kind(const struct frame *frame);

/* This node has been uploaded. */
void graph_counts_uploaded(CUgraphExec exec, const struct graph_descriptor *descriptor);

/* A call that uploads it has ended, and perhaps has launched it. False if it is not known. */
bool graph_counts_call_ended(CUgraphExec exec, bool has_run);

/* In the child of a fork: forgets everything, see graph_instances_after_fork. */
void graph_counts_after_fork(void);

#endif
