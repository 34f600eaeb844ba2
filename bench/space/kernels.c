/*
 * Usage: kernels each|whole
 *
 * Launches 38 kernels without a pause into two streams in turn, each with one of 17 partitions of the GPU: with gaps,
 * overlapping, of every size. "each" needs nvtaskset; "whole" leaves the whole GPU to all of them, and runs without
 * nvtaskset. Both run without MPS, which renumbers SMs.
 *
 * Prints a line for each kernel and TPC that it ran on, "KERNEL,STREAM,PARTITION,TPC,INSIDE,BLOCKS,START,END": whether
 * the TPC is in the partition; how many blocks it ran; the µs of the first block's start and the last one's end, since
 * the first block of all.
 */
#include "bench.h"
#include "own_partition.h"
#include "client_kernels.h"

#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS 38
#define PARTITIONS 17
#define STREAMS 2
#define THREADS 1024
#define BLOCKS_PER_SM 2
#define WAVES 2
#define STAY_NS 200000

static struct bench_gpu streams[STREAMS];
static struct tpcset partitions[PARTITIONS];
static unsigned int tpc_count, sms_per_tpc;

static struct kernel {
	unsigned int blocks;
	CUdeviceptr output;
	struct span *spans;
} kernels[KERNELS];

/* Every partition is another random set, whose size grows; the same ones in each run. */
static void choose_partitions(void)
{
	unsigned short state[3] = {1, 2, 3};

	for (unsigned int i = 0; i < PARTITIONS; i++) {
		unsigned int wanted = 1 + i * (tpc_count - 1) / (PARTITIONS - 1);

		while (tpcset_count(&partitions[i]) < wanted)
			tpcset_add(&partitions[i], (unsigned int)(erand48(state) * tpc_count));
	}
}

/* A kernel's neighbours in both streams have partitions of other sizes: 7 and 17 have no common divisor. */
static unsigned int partition_of(unsigned int kernel)
{
	return kernel * 7 % PARTITIONS;
}

static void prepare(struct kernel *kernel, unsigned int tpcs)
{
	kernel->blocks = tpcs * sms_per_tpc * BLOCKS_PER_SM * WAVES;
	kernel->output = bench_filled(kernel->blocks * sizeof(struct span) / sizeof(uint32_t), 0);
	kernel->spans = calloc(kernel->blocks, sizeof(struct span));
	if (!kernel->spans)
		bench_fail("no memory");
}

static void start(CUfunction function, unsigned int number)
{
	uint64_t stay = STAY_NS;
	struct kernel *kernel = &kernels[number];
	void *arguments[] = {&kernel->output, &stay};
	const struct bench_launch launch = {function, kernel->blocks, 1, THREADS, 1, 0, arguments};

	bench_start(&streams[number % STREAMS], &launch);
}

static uint64_t read_spans(void)
{
	uint64_t first = UINT64_MAX;

	for (struct kernel *kernel = kernels; kernel < kernels + KERNELS; kernel++) {
		bench_check(cuMemcpyDtoH_v2(kernel->spans, kernel->output, kernel->blocks * sizeof(struct span)));
		for (unsigned int block = 0; block < kernel->blocks; block++) {
			if (kernel->spans[block].end == 0 && !streams[0].is_simulated)
				bench_fail("a block did not run");
			if (kernel->spans[block].start < first)
				first = kernel->spans[block].start;
		}
	}
	return first;
}

static void print(unsigned int number, uint64_t zero)
{
	const struct kernel *kernel = &kernels[number];

	for (unsigned int tpc = 0; tpc < tpc_count; tpc++) {
		struct span all = {.start = UINT64_MAX};
		unsigned int blocks = 0;

		for (unsigned int block = 0; block < kernel->blocks; block++) {
			const struct span *span = &kernel->spans[block];

			if (span->sm / sms_per_tpc != tpc)
				continue;
			blocks++;
			all.start = span->start < all.start ? span->start : all.start;
			all.end = span->end > all.end ? span->end : all.end;
		}
		if (blocks > 0)
			printf("%u,%u,%u,%u,%d,%u,%.2f,%.2f\n", number, number % STREAMS, partition_of(number), tpc,
			       tpcset_has(&partitions[partition_of(number)], tpc), blocks,
			       (double)(all.start - zero) / 1e3, (double)(all.end - zero) / 1e3);
	}
}

static void find_size(void)
{
	static struct topology_list list;
	struct error error;

	if (topology_load(&list, &error) < 0)
		bench_fail("%s", error.reason);
	tpc_count = list.gpus[0].tpc_count;
	sms_per_tpc = list.gpus[0].sms_per_tpc;
}

int main(int count, char **arguments)
{
	bool has_each = count == 2 && strcmp(arguments[1], "each") == 0;
	struct own_partition own;

	if (!has_each && (count != 2 || strcmp(arguments[1], "whole") != 0))
		bench_fail("Usage: kernels each|whole");
	bench_open(&streams[0]);
	streams[1] = streams[0];
	streams[1].stream = bench_stream(&streams[0]);
	find_size();
	choose_partitions();
	if (has_each)
		own_partition_open(&own, &streams[0]);
	CUfunction function = bench_kernel(client_kernels_ptx, "span");

	for (unsigned int i = 0; i < KERNELS; i++)
		prepare(&kernels[i], tpcset_count(&partitions[partition_of(i)]));
	/* Loads what the first launch needs. */
	start(function, 0);
	bench_check(cuCtxSynchronize());
	for (unsigned int i = 0; i < KERNELS; i++) {
		if (has_each)
			own_partition_set(&own, &partitions[partition_of(i)]);
		start(function, i);
	}
	bench_check(cuCtxSynchronize());
	uint64_t zero = read_spans();

	for (unsigned int i = 0; i < KERNELS; i++) {
		print(i, zero);
		free(kernels[i].spans);
	}
	bench_close(&streams[0]);
	return EXIT_SUCCESS;
}
