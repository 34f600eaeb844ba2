/*
 * The partition of this process on the GPU that it works on, for programs that change it themselves: by the same write
 * that `nvtaskset -p` does.
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

/* There is one in a process; a program without, or whose GPU has a single TPC, is ended. */
void own_partition_open(struct own_partition *partition, const struct bench_gpu *gpu);

void own_partition_set(const struct own_partition *partition, const struct tpcset *set);

/* How many launches our library has seen. */
uint64_t own_partition_launches(void);

#endif
