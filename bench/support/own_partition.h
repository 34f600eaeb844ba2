/*
 * The partition of this process on its GPU, for programs that change it themselves, with the same write as `nvtaskset
 * -p`.
 */
#ifndef OWN_PARTITION_H
#define OWN_PARTITION_H

#include "bench.h"
#include "gpu/tpcset.h"

struct own_partition {
	const struct topology *gpu;
	struct tpcset all;
	struct tpcset halves[2]; /* the lower TPCs, and the upper ones */
};

/* A process has one. Ends a program that has none, or whose GPU has a single TPC. */
void own_partition_open(struct own_partition *partition, const struct bench_gpu *gpu);

void own_partition_set(const struct own_partition *partition, const struct tpcset *set);

/* How many launches our library has counted. */
uint64_t own_partition_launches(void);

#endif
