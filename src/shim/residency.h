/*
 * Launches whose blocks must run at once, clusters and cooperative grids, hang where the partition cannot hold them
 * (FACTS 6). Such a launch gets the smallest superset of its partition that can, whole virtual GPCs at a time.
 *
 * The driver's own mask is obeyed where what it has in common with the partition can hold the launch. Otherwise it is
 * overruled, as for other launches (qmd.h): a green context does not lead out of the partition. Of the TPCs that it keeps
 * clusters from, since none has room there, our topology knows the same.
 */
#ifndef NVTASKSET_SHIM_RESIDENCY_H
#define NVTASKSET_SHIM_RESIDENCY_H

#include "driver/cuda.h"
#include "driver/gpus.h"

#include <stdbool.h>

/* Of its shared memory, a shape has here what the launch adds to the function's own. From a descriptor, which has both in
 * one: */
struct qmd_shape fit_shape_of(const struct gpu *gpu, CUfunction function, const void *qmd);

enum fit_outcome {
	FIT_IN_BOTH,      /* in the partition, and in what the driver's own mask leaves */
	FIT_IN_PARTITION, /* in the partition, which overrules the driver's mask */
	FIT_WIDENED       /* in more than the partition */
};

/* Where a launch runs whose partition is `disable`: that becomes the mask that its descriptor is to have. The driver let it
 * pass, so it fits into the whole GPU. */
enum fit_outcome fit_find(const struct gpu *gpu, CUfunction function, const struct qmd_shape *shape, const void *qmd,
                          struct qmd_mask *disable);

/* Whether these TPCs can hold a launch. */
bool fit_holds(const struct gpu *gpu, CUfunction function, const struct qmd_shape *shape, const struct tpcset *set);

#endif
