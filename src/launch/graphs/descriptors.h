/*
 * The launch descriptors of graph nodes that a call uploads.
 *
 * The driver keeps a node's descriptor and uploads the same one again. So our mask and our release are removed as soon as
 * the descriptor has been uploaded. Otherwise the masks of all partitions that the process ever had would add up in it.
 */
#ifndef NVTASKSET_LAUNCH_GRAPHS_DESCRIPTORS_H
#define NVTASKSET_LAUNCH_GRAPHS_DESCRIPTORS_H

#include "driver/hook.h"
#include "driver/releases.h"
#include "gpu/qmd.h"

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

/* A descriptor is about to be written, in a call that uploads nodes: what is saved of it will be restored. The result is valid until
 * the next call of this function. NULL if there is no memory. */
struct graph_descriptor *graph_descriptors_remember(struct launch *launch);

/* Visits all of the call; restores them, at its end. */
void graph_descriptors_visit(const struct frame *frame, void (*visit)(const struct graph_descriptor *descriptor, void *data),
                             void *data);
void graph_descriptors_restore(struct frame *frame);

#endif
