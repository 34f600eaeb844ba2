/*
 * Usage: account ROUNDS
 *
 * How much counting costs (state/kernels/counts.h), within one process. Each of ROUNDS measures, in another order each
 * time, with counting turned off and on:
 *
 *   launch   the mean of 100 launches that are not waited for (the median of five such means)
 *   kernel   the time from one kernel of about 2 µs to the next, of 500 that are launched in a row: as fast as the CPU can
 *   node     the same in a graph: as fast as the GPU can
 *
 * As lines "launch,off,NS" and so on. The library is part of this program, since nothing else can turn counting off in a
 * process: then no context has anything that counts, as with NVTASKSET_ACCOUNT=off from the start.
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "inside.h"
#include "own_partition.h"

#include "driver/contexts.h"
#include "driver/releases.h"

#include <stdio.h>
#include <stdlib.h>

#define KERNELS 500
#define CYCLES UINT64_C(3000) /* with what begins and ends a kernel, about 2 µs */

static struct bench_gpu gpu;
static struct own_partition partition;
static struct releases *releases;
static struct bench_launch nothing, spin;
static CUgraphExec graph;

/* --- counting ------------------------------------------------------------------------------------------------- */

static void attach_ourselves(void)
{
	inside_attach();
	releases = contexts_releases(gpu.context);
	if (!releases || !releases->are_ready)
		bench_fail("kernels are not counted on this GPU");
}

/* A graph's nodes are uploaded again after an edit, also if it changes nothing. */
static void turn_counting(bool on)
{
	contexts_set_releases(gpu.context, on ? releases : NULL);
	own_partition_set(&partition, &partition.all);
}

static uint64_t ended(void)
{
	return atomic_load(counts_ended(releases->place, COUNTS_PLAIN)) + atomic_load(counts_ended(releases->place, COUNTS_NODE));
}

/* --- launches ------------------------------------------------------------------------------------------------- */

static double time_of_launch(void)
{
	return bench_submit_time(&gpu, &nothing);
}

static double time_of_kernel(void)
{
	bench_start(&gpu, &spin);
	bench_wait(&gpu);
	int64_t begin = bench_now();

	for (int i = 0; i < KERNELS; i++)
		bench_start(&gpu, &spin);
	bench_wait(&gpu);
	return (double)(bench_now() - begin) / KERNELS;
}

static void prepare_graph(void)
{
	bench_capture(&gpu);
	for (int i = 0; i < KERNELS; i++)
		bench_start(&gpu, &spin);
	graph = bench_captured(&gpu);
}

/* The first launch uploads the nodes. */
static double time_of_node(void)
{
	bench_check(cuGraphLaunch(graph, gpu.stream));
	bench_wait(&gpu);
	int64_t begin = bench_now();

	bench_check(cuGraphLaunch(graph, gpu.stream));
	bench_wait(&gpu);
	return (double)(bench_now() - begin) / KERNELS;
}

static const struct quantity {
	const char *name;
	double (*measure)(void);
} quantities[] = {
	{"launch", time_of_launch},
	{"kernel", time_of_kernel},
	{"node", time_of_node},
};

#define QUANTITIES (int)(sizeof quantities / sizeof quantities[0])

static void measure(int which)
{
	const struct quantity *quantity = &quantities[which / 2];
	bool on = which % 2;

	turn_counting(on);
	uint64_t before = ended();
	double time = quantity->measure();

	/* Each measurement has more kernels than this. The last ones of the one before may count late. */
	if ((ended() - before > 100) != on)
		bench_fail("counting could not be turned off or on");
	printf("%s,%s,%.1f\n", quantity->name, on ? "on" : "off", time);
}

int main(int count, char **arguments)
{
	int rounds = bench_rounds(count, arguments);
	uint64_t cycles = CYCLES;

	bench_open(&gpu);
	attach_ourselves();
	own_partition_open(&partition, &gpu);
	CUdeviceptr output = bench_memory(sizeof(uint32_t));
	void *spin_arguments[] = {&output, &cycles};

	nothing = (struct bench_launch){bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};
	spin = (struct bench_launch){bench_kernel(kernels_ptx, "where"), 1, 1, 1, 1, 0, spin_arguments};
	time_of_launch();
	time_of_kernel();
	prepare_graph();
	for (int round = 0; round < rounds; round++)
		bench_round(round, 2 * QUANTITIES, measure);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
