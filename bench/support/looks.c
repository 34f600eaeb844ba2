#include "looks.h"

#include "last_kernel.h"

#include <stdlib.h>

static size_t bytes_of(const struct looks *looks, int kernels)
{
	return (size_t)kernels * looks->blocks * sizeof(struct look);
}

void looks_open(struct looks *looks, const struct bench_gpu *gpu, unsigned int blocks, int kernels)
{
	*looks = (struct looks){.gpu = gpu, .kernel = bench_kernel(last_ptx, "last"), .blocks = blocks};
	looks->memory = bench_memory(bytes_of(looks, kernels));
}

void looks_launch(const struct looks *looks, int number, uint64_t ns)
{
	CUdeviceptr at = looks->memory + bytes_of(looks, number);
	void *arguments[] = {&at, &ns};

	bench_start(looks->gpu, &(const struct bench_launch){looks->kernel, looks->blocks, 1, 32, 1, 0, arguments});
}

void looks_read(const struct looks *looks, int kernels, struct look *found)
{
	size_t bytes = bytes_of(looks, kernels);
	struct look *own = malloc(bytes + 1);

	if (!own)
		bench_fail("no memory");
	if (kernels > 0)
		bench_check(cuMemcpyDtoH_v2(own, looks->memory, bytes));
	for (int i = 0; i < kernels; i++) {
		const struct look *of_blocks = &own[(size_t)i * looks->blocks];

		found[i] = of_blocks[0];
		for (unsigned int block = 1; block < looks->blocks; block++) {
			if (of_blocks[block].begin < found[i].begin)
				found[i].begin = of_blocks[block].begin;
			if (of_blocks[block].end > found[i].end)
				found[i].end = of_blocks[block].end;
		}
	}
	free(own);
}
