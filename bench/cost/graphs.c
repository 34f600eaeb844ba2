/*
 * Usage: graphs NODES CYCLES
 *
 * What CUDA graphs cost inside nvtaskset, as lines "NAME,VALUE":
 *   unchanged_ns      the call that launches a graph of NODES kernels, with an unchanged partition
 *   changed_ns        the same after a change; both are medians
 *   refresh_node_ns   their difference, for each node
 *   cycles            how often a graph of one kernel was then made, launched and destroyed, with a change now and then
 *   cycle_bytes       by how much the C library's memory in use grew for each of them, and
 *   cycle_rss_bytes   by how much the resident memory did
 *   conditional_…     the same three for a graph with the kernel in the body of a conditional node, where the driver
 *                     has such nodes
 *
 * Without nvtaskset there is no partition to change: only unchanged_ns and the cycles.
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLES 51
#define CYCLES_WARM_UP 1000
#define CYCLES_A_CHANGE 100

static struct bench_gpu gpu;
static CUfunction nothing;
static struct segment segment;
static struct topology_list machine;
static bool can_change;

/* --- partitions -------------------------------------------------------------------------------------------------- */

static void find_segment(void)
{
	struct error error;

	can_change = segment_open(&segment, getpid(), NULL, NULL) == SEGMENT_FOUND;
	if (can_change && topology_load(&machine, &error) < 0)
		bench_fail("%s", error.reason);
}

/* Changes the partition to the whole of each GPU, and to all but its first TPC, in turn. */
static void change(void)
{
	static bool whole;
	struct error error;

	for (unsigned int i = 0; i < machine.count; i++) {
		struct segment_partition partition = {
			.pci = machine.gpus[i].pci,
			.set = topology_all(&machine.gpus[i]),
		};

		if (!whole)
			tpcset_remove(&partition.set, 0);
		if (segment_change(&segment, &(struct segment_revision){.count = 1, .partitions[0] = partition}, NULL, &error) < 0)
			bench_fail("%s", error.reason);
	}
	whole = !whole;
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

/* Adds kernels, each dependent on the one before. */
static void add_kernels(CUgraph graph, unsigned int count)
{
	const CUDA_KERNEL_NODE_PARAMS parameters = {
		.func = nothing,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
	};
	CUgraphNode node = NULL;

	for (unsigned int i = 0; i < count; i++) {
		CUgraphNode previous = node;

		bench_check(cuGraphAddKernelNode_v2(&node, graph, i ? &previous : NULL, i ? 1 : 0, &parameters));
	}
}

typedef CUgraphExec maker(unsigned int count);

static CUgraphExec make(unsigned int count)
{
	CUgraphExec exec;
	CUgraph graph;

	bench_check(cuGraphCreate(&graph, 0));
	add_kernels(graph, count);
	bench_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	bench_check(cuGraphDestroy(graph));
	return exec;
}

static bool has_conditional(void)
{
	return cuGraphConditionalHandleCreate && cuGraphAddNode_v2;
}

/* A graph with a kernel in a body that runs at each launch. */
static CUgraphExec make_conditional(unsigned int count)
{
	CUgraphNodeParams parameters = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	bench_check(cuGraphCreate(&graph, 0));
	parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
	parameters.conditional.size = 1;
	parameters.conditional.ctx = gpu.context;
	bench_check(cuGraphConditionalHandleCreate(&parameters.conditional.handle, graph, gpu.context, 1,
	                                           CU_GRAPH_COND_ASSIGN_DEFAULT));
	bench_check(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &parameters));
	add_kernels(parameters.conditional.phGraph_out[0], count);
	bench_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	bench_check(cuGraphDestroy(graph));
	return exec;
}

/* The median time of a launch's call. */
static int64_t launch(CUgraphExec exec, bool changed)
{
	int64_t times[SAMPLES];

	for (unsigned int i = 0; i < SAMPLES; i++) {
		if (changed)
			change();
		int64_t start = bench_now();

		bench_check(cuGraphLaunch(exec, gpu.stream));
		times[i] = bench_now() - start;
		bench_wait(&gpu);
	}
	return bench_median(times, SAMPLES);
}

static void measure_launches(unsigned int nodes)
{
	CUgraphExec exec = make(nodes);

	launch(exec, false);
	int64_t unchanged = launch(exec, false);

	printf("unchanged_ns,%lld\n", (long long)unchanged);
	if (can_change) {
		int64_t changed = launch(exec, true);

		printf("changed_ns,%lld\n", (long long)changed);
		printf("refresh_node_ns,%.0f\n", (double)(changed - unchanged) / nodes);
	}
	bench_check(cuGraphExecDestroy(exec));
}

/* --- cycles ------------------------------------------------------------------------------------------------------ */

static void cycle(maker *make_one, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		CUgraphExec exec = make_one(1);

		bench_check(cuGraphLaunch(exec, gpu.stream));
		if (can_change && i % CYCLES_A_CHANGE == 0) {
			change();
			bench_check(cuGraphLaunch(exec, gpu.stream));
		}
		bench_wait(&gpu);
		bench_check(cuGraphExecDestroy(exec));
	}
}

static int64_t resident_bytes(void)
{
	long long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%*d %lld", &pages) != 1)
		bench_fail("/proc/self/statm cannot be read");
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void measure_cycles(const char *kind, maker *make_one, unsigned int cycles)
{
	cycle(make_one, CYCLES_WARM_UP);
	int64_t used = (int64_t)mallinfo2().uordblks, resident = resident_bytes();

	cycle(make_one, cycles);
	printf("%scycles,%u\n", kind, cycles);
	printf("%scycle_bytes,%.3f\n", kind, (double)((int64_t)mallinfo2().uordblks - used) / cycles);
	printf("%scycle_rss_bytes,%.3f\n", kind, (double)(resident_bytes() - resident) / cycles);
}

int main(int count, char **arguments)
{
	if (count != 3) {
		fputs("Usage: graphs NODES CYCLES\n", stderr);
		return EXIT_FAILURE;
	}
	unsigned int nodes = (unsigned int)bench_number(arguments[1], "NODES");
	unsigned int cycles = (unsigned int)bench_number(arguments[2], "CYCLES");

	bench_open(&gpu);
	nothing = bench_kernel(kernels_ptx, "nothing");
	find_segment();
	measure_launches(nodes);
	measure_cycles("", make, cycles);
	if (has_conditional())
		measure_cycles("conditional_", make_conditional, cycles);
	return EXIT_SUCCESS;
}
