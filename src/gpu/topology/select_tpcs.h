/*
 * Selects TPCs for a program that asks only for a number of them.
 */
#ifndef NVTASKSET_TOPOLOGY_SELECT_TPCS_H
#define NVTASKSET_TOPOLOGY_SELECT_TPCS_H

#include "base/error.h"
#include "gpu/tpcset.h"
#include "topology.h"

enum strategy {
	/* Over many GPCs, for their share of the memory's bandwidth, but in chunks of one GPC that a cluster of 8 blocks
	 * fits into: cuBLAS and cuDNN launch clusters, which find no room in TPCs that are alone (bench/run strategies). */
	STRATEGY_DISTRIBUTED,
	STRATEGY_PACKED /* whole GPCs first: the program then shares their caches with nobody */
};

/* Selects `count` TPCs, 1 or more, none of them `used`. Where GPCs are unknown, the GPU
 * counts as one. The same arguments have the same result. -1 if too few are free, with a reason that lists them. */
int select_tpcs(struct tpcset *selected, const struct topology *gpu, const struct tpcset *used, unsigned int count,
                enum strategy strategy, struct error *error);

/* Parses a number of TPCs, 1 … tpc_count, or a share of them from 1% to 100%, rounded down, but 1 at least: so two
 * shares that make 100% together fit beside each other on a GPU of two TPCs or more. -1 with the reason. */
int select_parse_count(unsigned int *count, const char *text, const struct topology *gpu, struct error *error);

#endif
