/*
 * Kernels that know when they ran (last_kernel.h): each of so many blocks of a warp writes its first look at the GPU's clock and its
 * last one.
 */
#ifndef LOOKS_H
#define LOOKS_H

#include "bench.h"

struct look {
	uint64_t begin, end; /* of all blocks; on the GPU's clock, in ns */
};

struct looks {
	const struct bench_gpu *gpu;
	CUfunction kernel;
	CUdeviceptr memory;
	unsigned int blocks;
};

/* With room for so many kernels. */
void looks_open(struct looks *looks, const struct bench_gpu *gpu, unsigned int blocks, int kernels);

/* Launches a kernel of so many ns, which writes to the place of this number. */
void looks_launch(const struct looks *looks, int number, uint64_t ns);

/* Of the first so many places. */
void looks_read(const struct looks *looks, int kernels, struct look *found);

#endif
