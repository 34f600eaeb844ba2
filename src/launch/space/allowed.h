/* The TPCs of a GPU that the partition allows now. For calls other than the launch itself: requests and queries. */
#ifndef NVTASKSET_LAUNCH_SPACE_ALLOWED_H
#define NVTASKSET_LAUNCH_SPACE_ALLOWED_H

#include "driver/gpus.h"
#include "state/segment/segment.h"

void allowed_use(const struct segment *segment);

/* The TPCs that a launch may use now. The GPU's topology must be known. All TPCs if nothing is restricted, or if the
 * partition cannot be read or has no TPC of this GPU. */
struct tpcset allowed_on(const struct gpu *gpu);

#endif
