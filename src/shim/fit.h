/*
 * Launches whose blocks must run at once, clusters and cooperative grids, hang where the partition cannot hold them
 * (FACTS 6). Such a launch gets the smallest superset of its partition that can, whole virtual GPCs at a time.
 */
#ifndef NVTASKSET_SHIM_FIT_H
#define NVTASKSET_SHIM_FIT_H

#include "cuda.h"
#include "gpus.h"

#include <stdbool.h>

/* The blocks of a cluster that a launch asks for: 1 where it asks for none, and where the function alone says how many,
 * which is left to the check of the descriptor. */
unsigned int fit_cluster_of(const CUlaunchConfig *config);

/* Of its shared memory, a shape has here what the launch adds to the function's own. From a descriptor, which has both in
 * one: */
struct qmd_shape fit_shape_of(const struct gpu *gpu, CUfunction function, const void *qmd);

/* Takes TPCs out of `disable` until the launch fits; true where it took any. The driver let the launch pass, so it
 * fits into the whole GPU less what the driver's own mask disables. */
bool fit_widen(const struct gpu *gpu, CUfunction function, const struct qmd_shape *shape, const void *qmd,
               struct qmd_mask *disable);

/* Whether these TPCs can hold a launch. */
bool fit_holds(const struct gpu *gpu, CUfunction function, const struct qmd_shape *shape, const struct tpcset *set);

#endif
