/*
 * Usage: nvtaskset --mps off all resize SAMPLES [NODES]
 *
 * How soon a changed partition is in force. Launches one kernel, or a graph of NODES kernels in a row, in one half of
 * the GPU's TPCs and in the other in turn. Prints SAMPLES lines "METRIC,US" of each metric:
 *
 *   write          the change itself
 *   first          from before the change until the host sees what the first kernel after it wrote
 *   submit         the launch after it: the call
 *   done           from before the change to the end of the last kernel
 *   plain-submit, plain-first, plain-done   the same, from before the launch, with no change
 *
 * Each kernel reports on which SM it ran. A kernel in the wrong half ends the program. So this runs without MPS, which
 * renumbers SMs.
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "own_partition.h"

#include "gpu/topology/topology.h"

#include <stdio.h>
#include <stdlib.h>

#define WARM_UP 10
#define PATIENCE_NS 1000000000
#define NODES_MAX 100000

static struct bench_gpu gpu;

static struct own_partition partition;

/* --- launches -------------------------------------------------------------------------------------------------- */

static struct {
	unsigned int nodes;
	CUgraphExec graph; /* NULL: one kernel without a graph */
	CUfunction where;
	CUdeviceptr output;
	volatile uint32_t *sms;
} work;

/* Node `number` writes to its own place of the output. */
static void start_kernel(unsigned int number)
{
	CUdeviceptr place = work.output + number * sizeof(uint32_t);
	uint64_t cycles = 0;
	void *arguments[] = {&place, &cycles};
	const struct bench_launch launch = {work.where, 1, 1, 1, 1, 0, arguments};

	bench_start(&gpu, &launch);
}

static void prepare_work(unsigned int nodes, bool is_graph)
{
	work.nodes = nodes;
	work.where = bench_kernel(kernels_ptx, "where");
	work.sms = bench_visible(nodes, &work.output);
	if (!is_graph)
		return;
	bench_capture(&gpu);
	for (unsigned int node = 0; node < nodes; node++)
		start_kernel(node);
	work.graph = bench_captured(&gpu);
}

static void start_work(void)
{
	if (work.graph)
		bench_check(cuGraphLaunch(work.graph, gpu.stream));
	else
		start_kernel(0);
}

static int64_t await_first(int64_t start)
{
	int64_t now = start;

	while (work.sms[0] == UINT32_MAX && now - start < PATIENCE_NS)
		now = bench_now();
	if (work.sms[0] == UINT32_MAX)
		bench_fail("a kernel did not start within a second");
	return bench_now();
}

static void check_half(unsigned int half)
{
	for (unsigned int node = 0; node < work.nodes; node++) {
		if (work.sms[node] == UINT32_MAX ||
		    !tpcset_has(&partition.halves[half], work.sms[node] / partition.gpu->sms_per_tpc))
			bench_fail("kernel %u of %u ran on SM %u, outside its partition", node, work.nodes,
			           work.sms[node]);
	}
}

/* --- samples --------------------------------------------------------------------------------------------------- */

static double microseconds(int64_t ns)
{
	return (double)ns / 1e3;
}

/* Launches once in this half, after moving there if `move`. */
static void sample(unsigned int half, bool move, bool is_warm)
{
	for (unsigned int node = 0; node < work.nodes; node++)
		work.sms[node] = UINT32_MAX;
	int64_t start = bench_now(), changed = start;

	if (move) {
		own_partition_set(&partition, &partition.halves[half]);
		changed = bench_now();
	}
	start_work();
	int64_t submitted = bench_now();
	int64_t seen = await_first(submitted);

	bench_wait(&gpu);
	int64_t done = bench_now();

	check_half(half);
	if (!is_warm)
		return;
	if (move)
		printf("write,%.3f\n", microseconds(changed - start));
	const char *prefix = move ? "" : "plain-";

	printf("%ssubmit,%.3f\n%sfirst,%.3f\n%sdone,%.3f\n", prefix, microseconds(submitted - changed), prefix,
	       microseconds(seen - start), prefix, microseconds(done - start));
}

int main(int count, char **arguments)
{
	int samples = count > 1 ? (int)bench_number(arguments[1], "SAMPLES") : 0;
	double nodes = count > 2 ? bench_number(arguments[2], "NODES") : 1;

	if (samples <= 0 || count > 3 || nodes < 1 || nodes > NODES_MAX)
		bench_fail("Usage: resize SAMPLES [NODES]");
	bench_open(&gpu);
	own_partition_open(&partition, &gpu);
	prepare_work((unsigned int)nodes, count > 2);
	for (int i = 0; i < samples + WARM_UP; i++) {
		sample((unsigned int)i % 2, true, i >= WARM_UP);
		sample((unsigned int)i % 2, false, i >= WARM_UP);
	}
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
