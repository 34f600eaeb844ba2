/*
 * How many kernels each launch of a graph has.
 *
 * A launch does not announce its kernels. The upload of a node does, at the first launch of an instance and after a
 * change. Each node has a descriptor of its own, and is known here by the descriptor's address. So a launch has a
 * kernel for each descriptor, except for the driver's own kernels at the graph's front, and disabled nodes.
 *
 * A fill that becomes a kernel only when an update makes it large has no such descriptor: each launch announces the
 * fill anew (hardware.md, "Graphs"). The first upload of an instance brings the descriptors of all nodes. So a later
 * descriptor is of a large fill, and counts for the current launch only.
 *
 * Some instances do not run each kernel once at each launch by the program: with bodies, or launched or updated by
 * kernels. The kernels count at their end (COUNTS_UNHEARD), and the launches count nothing.
 *
 * As with the driver itself, one thread at a time uses an instance.
 */
#pragma once

#include "driver/hook.h"
#include "driver/releases.h"
#include "gpu/qmd.h"
#include "state/kernels/counts.h"

/* How a launch of the graph counts the node. */
enum graph_kernel {
	GRAPH_NO_KERNEL, /* the driver's own, or counted at the end (COUNTS_UNHEARD) */
	GRAPH_COUNTED,   /* launched, and counted at the end */
	GRAPH_UNCOUNTED  /* launched, and not counted at the end */
};

struct graph_descriptor {
	void *qmd;
	struct counts_place *place; /* of the context; NULL: nowhere */
	enum graph_kernel kernel;
	struct qmd_saved saved;
};

/* A descriptor is about to be written, in a call that uploads nodes. The saved part will be restored, since the driver
 * uploads the same descriptor of a node again: otherwise the masks of all earlier partitions of the process would add
 * up. The result is valid until the next call of this function. NULL without memory. */
struct graph_descriptor *graph_counts_remember(struct launch *launch);

/* All descriptors of the call, at the end. */
void graph_counts_restore(struct frame *frame);

/* An instance has been made. `run_once`: each kernel runs once at each launch. False without memory: stays unknown. */
bool graph_counts_add(CUgraphExec exec, bool run_once);

/* An instance, known or not, is about to be destroyed. */
void graph_counts_remove(CUgraphExec exec);

/* How nodes count that the current call uploads; the instance may still be in the making. In the launch path: no
 * wait. */
enum counts_kind graph_counts_kind(const struct frame *frame);

/* The call's uploads belong to the instance. Before graph_counts_restore. */
void graph_counts_uploaded(CUgraphExec exec, const struct frame *frame);

/* A call that uploads the instance has ended, and perhaps has launched the instance. False if not known. */
bool graph_counts_call_ended(CUgraphExec exec, bool has_run);

/* In the child of a fork: forgets everything, see graph_instances_after_fork. */
void graph_counts_after_fork(void);
