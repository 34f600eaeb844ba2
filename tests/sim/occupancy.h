/*
 * How many blocks of a kernel fit on an SM, and how many clusters on a GPU. The driver answers without regard to
 * partitions (facts.md, "Launches that never finish"); the block scheduler uses the same numbers.
 */
#ifndef SIM_OCCUPANCY_H
#define SIM_OCCUPANCY_H

#include "gpu/topology/topology.h"

#include <stddef.h>

#define OCCUPANCY_THREADS_PER_BLOCK 1024
#define OCCUPANCY_REGISTERS_PER_THREAD 32 /* of every kernel, since none is compiled */

/* How many blocks one SM holds at a time; 0 if not even one fits. */
unsigned int occupancy_blocks(const struct topology *gpu, unsigned int threads, size_t shared_bytes);

unsigned int occupancy_shared_per_block(const struct topology *gpu);

#endif
