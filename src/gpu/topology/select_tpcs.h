/* Selects TPCs for a program that asks only for a number of TPCs. */
#pragma once

#include "base/error.h"
#include "gpu/tpcset.h"
#include "topology.h"

enum strategy {
	/* Over many GPCs, for their share of the memory's bandwidth, but in chunks of a GPC with room for a cluster of
	 * 8 blocks: cuBLAS and cuDNN launch clusters, which find no room in single TPCs (bench/run strategies). */
	STRATEGY_DISTRIBUTED,
	STRATEGY_PACKED /* whole GPCs first: the program shares the GPCs' caches with no other program */
};

/* Selects `count` TPCs, 1 or more, outside `used`. Unknown GPCs count as a single GPC. The same arguments have the same
 * result. -1 if too few TPCs are free, with a reason that lists the free TPCs. */
int select_tpcs(struct tpcset *selected, const struct topology *gpu, const struct tpcset *used, unsigned int count,
                enum strategy strategy, struct error *error);

/* Parses a number of TPCs, 1 … tpc_count, or a share from 1% to 100%, rounded down, but at least 1: two shares with
 * the sum 100% fit on a GPU of two TPCs or more. -1 with the reason. */
int select_parse_count(unsigned int *count, const char *text, const struct topology *gpu, struct error *error);
