/*
 * How many kernels each launch of a graph has.
 *
 * A launch does not announce its kernels, but the upload of a node does, at the first launch of an instance and after a
 * change. Each node has a descriptor of its own, by whose address it is known here. So as many kernels are launched as
 * there are descriptors, without those of kernels of the driver's own, which stand in front, or for a disabled node.
 *
 * A fill that was no kernel when the instance was made, and that an update has made large, has no such descriptor: each
 * launch announces it anew (hardware.md, "Graphs"). All descriptors of an instance are there when it has been
 * uploaded for the first time, so what comes with others is such a kernel, and counts for that launch.
 *
 * Some instances do not run each kernel once at each launch by the program: those with bodies, or that kernels launch or
 * update. Their kernels count when they end (COUNTS_UNHEARD), and their launches count nothing.
 *
 * As with the driver itself, one thread at a time uses an instance.
 */
#ifndef NVTASKSET_LAUNCH_GRAPHS_COUNTS_H
#define NVTASKSET_LAUNCH_GRAPHS_COUNTS_H

#include "driver/hook.h"
#include "driver/releases.h"
#include "gpu/qmd.h"
#include "state/kernels/counts.h"

#include <stdbool.h>

/* How a launch of the graph counts the node. */
enum graph_kernel {
	GRAPH_NO_KERNEL, /* the driver's own, or counted when it ends (COUNTS_UNHEARD) */
	GRAPH_COUNTED,   /* launched, and counted when it ends */
	GRAPH_UNCOUNTED  /* launched, and not counted when it ends */
};

struct graph_descriptor {
	void *qmd;
	struct counts_place *place; /* of its context; NULL: nowhere */
	enum graph_kernel kernel;
	struct qmd_saved saved;
};

/* A descriptor is about to be written, in a call that uploads nodes: what is saved of it will be restored, since the driver keeps a
 * node's descriptor and uploads the same one again. Otherwise the masks of all partitions that the process ever had would add up in
 * it. The result is valid until the next call of this function. NULL if there is no memory. */
struct graph_descriptor *graph_counts_remember(struct launch *launch);

/* All of the call, at its end. */
void graph_counts_restore(struct frame *frame);

/* An instance has been made. `run_once`: each kernel runs once at each launch. False if there is no memory: it stays
 * unknown then. */
bool graph_counts_add(CUgraphExec exec, bool run_once);

/* It is about to be destroyed; it need not be known. */
void graph_counts_remove(CUgraphExec exec);

/* How nodes count that a call uploads now, into an instance that it may be making. In the launch path: waits for nothing. */
enum counts_kind graph_counts_kind(const struct frame *frame);

/* What the call has uploaded belongs to it. Before that is restored. */
void graph_counts_uploaded(CUgraphExec exec, const struct frame *frame);

/* A call that uploads it has ended, and perhaps has launched it. False if it is not known. */
bool graph_counts_call_ended(CUgraphExec exec, bool has_run);

/* In the child of a fork: forgets everything, see graph_instances_after_fork. */
void graph_counts_after_fork(void);

#endif
