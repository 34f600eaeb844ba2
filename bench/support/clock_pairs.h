/*
 * How far the GPU's clock is ahead of CLOCK_MONOTONIC, measured by questions and answers: independent of what is estimated
 * while somebody looks (monitor/estimate/clock_fit.h).
 */
#ifndef CLOCK_PAIRS_H
#define CLOCK_PAIRS_H

#include "bench.h"

/* At the time `at`, on CLOCK_MONOTONIC, it was between these. */
struct clock_pair {
	int64_t at, least, most;
};

/* The GPU has nothing else to do. Takes about a millisecond. */
struct clock_pair clock_pair_measure(const struct bench_gpu *gpu);

/* A time of the GPU's on CLOCK_MONOTONIC, between two such measurements. */
int64_t clock_pair_convert(const struct clock_pair *before, const struct clock_pair *after, uint64_t gpu_ns);

#endif
