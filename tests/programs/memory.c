/*
 * What tests/hardware/memory.sh does with memory, on the first GPU. Each prints one line.
 *
 *   memory cost N             the median time of N allocations of 1 MiB, each freed again, in ns
 *   memory random SECONDS     allocates and frees 1 to 256 MiB at random; "allocated N refused N freed N failed N". A
 *                             refusal fails where the same allocation has room right before and right after, by the
 *                             driver's word
 *   memory total              what cuDeviceTotalMem and cuMemGetInfo say, in MiB: total, total, free
 */
#include "base/clock.h"
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void open_gpu(void)
{
	CUcontext context;

	gpu_initialise();
	if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
		fputs("memory: no context\n", stderr);
		exit(EXIT_FAILURE);
	}
}

/* --- cost ----------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const uint64_t *first = a, *second = b;

	return (*first > *second) - (*first < *second);
}

static uint64_t time_one(void)
{
	CUdeviceptr address;
	uint64_t begin = process_clock_ns();
	CUresult result = cuMemAlloc_v2(&address, MIB);
	uint64_t end = process_clock_ns();

	if (result != CUDA_SUCCESS || cuMemFree_v2(address) != CUDA_SUCCESS)
		exit(EXIT_FAILURE);
	return end - begin;
}

static void print_cost(size_t count)
{
	uint64_t *times = calloc(count, sizeof *times);
	CUdeviceptr kept;

	if (!times || count == 0 || cuMemAlloc_v2(&kept, MIB) != CUDA_SUCCESS)
		exit(EXIT_FAILURE);
	for (size_t i = 0; i < count; i++)
		times[i] = time_one();
	qsort(times, count, sizeof *times, compare);
	printf("%llu\n", (unsigned long long)times[count / 2]);
	free(times);
}

/* --- at random ------------------------------------------------------------------------------------------------ */

#define HELD_MAX 64

static struct held {
	CUdeviceptr address;
	size_t bytes;
} held[HELD_MAX];

static unsigned int allocated, refused, freed, failed;

static size_t room(void)
{
	size_t free_bytes = 0, total;

	cuMemGetInfo_v2(&free_bytes, &total);
	return free_bytes;
}

/* Others free in between, and make room for a moment: so it must be much. */
static void take(struct held *place, size_t bytes)
{
	size_t before = room();

	if (cuMemAlloc_v2(&place->address, bytes) == CUDA_SUCCESS) {
		place->bytes = bytes;
		allocated++;
	} else {
		refused++;
		failed += before >= 8 * bytes && room() >= 8 * bytes;
	}
}

static void give(struct held *place)
{
	failed += cuMemFree_v2(place->address) != CUDA_SUCCESS;
	place->bytes = 0;
	freed++;
}

static void be_random(double seconds)
{
	double end = clock_ms() + seconds * 1000;
	unsigned int seed = (unsigned int)getpid();

	while (clock_ms() < end) {
		struct held *place = &held[(unsigned int)rand_r(&seed) % HELD_MAX];

		if (place->bytes > 0)
			give(place);
		else
			take(place, (1 + (size_t)rand_r(&seed) % 256) * MIB);
	}
	printf("allocated %u refused %u freed %u failed %u\n", allocated, refused, freed, failed);
}

/* -------------------------------------------------------------------------------------------------------------- */

static void print_total(void)
{
	size_t device = 0, free_bytes = 0, total = 0;

	cuDeviceTotalMem_v2(&device, 0);
	cuMemGetInfo_v2(&free_bytes, &total);
	printf("%zu %zu %zu\n", device / MIB, total / MIB, free_bytes / MIB);
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "", *number = count > 2 ? arguments[2] : "0";

	open_gpu();
	if (strcmp(what, "cost") == 0)
		print_cost((size_t)atol(number));
	else if (strcmp(what, "random") == 0)
		be_random(atof(number));
	else
		print_total();
	return EXIT_SUCCESS;
}
