/*
 * Restores the launch descriptors of graph nodes.
 *
 * The driver keeps a node's descriptor and uploads the same one again. So our mask is removed as soon as the descriptor
 * has been uploaded. Otherwise the masks of all partitions that the process ever had would add up in it.
 */
#ifndef NVTASKSET_SHIM_GRAPH_DESCRIPTORS_H
#define NVTASKSET_SHIM_GRAPH_DESCRIPTORS_H

#include "gpu/qmd.h"

/* A descriptor is about to be written, in a call of this thread that uploads nodes. Its version must be known. */
void graph_descriptors_remember(const struct qmd_family *family, void *qmd);

/* Restores all of them, at the end of that call. */
void graph_descriptors_restore(void);

#endif
