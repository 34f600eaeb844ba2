/*
 * Selects TPCs for a program that asks only for a number of them.
 */
#ifndef NVTASKSET_SELECT_TPCS_H
#define NVTASKSET_SELECT_TPCS_H

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "tpcset.h"

enum strategy {
	STRATEGY_PACKED,     /* whole GPCs first: the program then shares their caches with nobody */
	STRATEGY_DISTRIBUTED /* evenly over the GPCs: the most memory bandwidth and cache for each TPC */
};

/* Selects `count` TPCs, 1 or more, none of them `used`. GPCs are the chip's if known, else virtual ones, else the GPU
 * counts as one. The same arguments have the same result. -1 if too few are free, with a reason that lists them. */
int select_tpcs(struct tpcset *selected, const struct topology *gpu, const struct tpcset *used, unsigned int count,
                enum strategy strategy, struct error *error);

/* Parses a number of TPCs, 1 … tpc_count, or a share of them from 1% to 100%, rounded to the nearest number that is not
 * 0. -1 with the reason. */
int select_parse_count(unsigned int *count, const char *text, const struct topology *gpu, struct error *error);

#endif
