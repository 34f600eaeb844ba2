/* What the partition has of a GPU at this moment: for what the program asks for, or asks about, outside of launches. */
#ifndef NVTASKSET_SHIM_ALLOWED_H
#define NVTASKSET_SHIM_ALLOWED_H

#include "driver/gpus.h"
#include "state/segment.h"

void allowed_use(const struct segment *segment);

/* The TPCs of a GPU whose topology is known that a launch may use now: all where nothing is restricted, or what is asked
 * for cannot be. */
struct tpcset allowed_on(const struct gpu *gpu);

#endif
