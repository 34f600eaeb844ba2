/*
 * Which TPCs a program gets that names only how many it wants.
 */
#ifndef NVTASKSET_CHOOSE_H
#define NVTASKSET_CHOOSE_H

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "tpcset.h"

enum strategy {
	STRATEGY_PACKED,     /* whole GPCs first: they share caches with nobody else then */
	STRATEGY_DISTRIBUTED /* evenly over the GPCs: the most memory bandwidth and cache for each TPC */
};

/* Chooses `count` TPCs, 1 or more, none of them `used`. GPCs are the chip's where known, else virtual ones, else the GPU
 * is one. The same question has the same answer. -1 where too few are free, with a reason that names them. */
int choose_tpcs(struct tpcset *chosen, const struct topology *gpu, const struct tpcset *used, unsigned int count,
                enum strategy strategy, struct error *error);

/* A number of TPCs, 1 … tpc_count, or a share of them from 1% to 100%, rounded to the nearest number that is not 0.
 * -1 with the reason. */
int choose_parse_count(unsigned int *count, const char *text, const struct topology *gpu, struct error *error);

#endif
