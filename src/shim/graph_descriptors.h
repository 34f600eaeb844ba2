/*
 * Launch descriptors of nodes of graphs, put back.
 *
 * The driver keeps a node's descriptor and uploads the same one again: what we disabled there is taken back as soon as it
 * has been uploaded, or the masks of all partitions that ever were would gather in it.
 */
#ifndef NVTASKSET_SHIM_GRAPH_DESCRIPTORS_H
#define NVTASKSET_SHIM_GRAPH_DESCRIPTORS_H

#include "gpu/qmd.h"

/* One is about to be written, in a call of this thread that uploads nodes. Of a version that is known. */
void graph_descriptors_remember(const struct qmd_family *family, void *qmd);

/* At the end of that call. */
void graph_descriptors_restore(void);

#endif
