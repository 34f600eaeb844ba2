/*
 * CUDA graphs follow a changed partition at their next launch (FACTS 7): whatever became of the graph that they were
 * made from, nodes in child graphs too, and disabled nodes stay disabled.
 */
#include "support/gpu.h"

#include "segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES 3

static struct gpu_under_test gpu;
static struct tpcset before, after;

/* Each node writes to an output of its own. */
static CUdeviceptr outputs[NODES];
static CUgraphNode nodes[NODES];

static struct segment_counters counters(void)
{
	struct segment_counters now;
	struct segment segment;
	struct error error;

	assert_int_equal(segment_open(&segment, getpid(), &error), SEGMENT_FOUND);
	segment_read_counters(&segment, &now);
	segment_close(&segment);
	return now;
}

/* --- graphs --------------------------------------------------------------------------------------------------- */

static void add_node(CUgraph graph, unsigned int number, const CUgraphNode *previous)
{
	uint64_t cycles = GPU_CYCLES;
	void *arguments[] = {&outputs[number], &cycles};
	CUDA_KERNEL_NODE_PARAMS parameters = {
		.func = gpu.where,
		.gridDimX = GPU_BLOCKS(&gpu),
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = GPU_THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = arguments,
	};

	gpu_check(cuGraphAddKernelNode_v2(&nodes[number], graph, previous, previous ? 1 : 0, &parameters));
}

/* Nodes in a row. */
static CUgraph make_graph(void)
{
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	for (unsigned int i = 0; i < NODES; i++)
		add_node(graph, i, i ? &nodes[i - 1] : NULL);
	return graph;
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec;

	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

/* Launches it, with every output marked as not written. */
static void launch(CUgraphExec exec)
{
	for (unsigned int i = 0; i < NODES; i++)
		gpu_check(cuMemsetD8_v2(outputs[i], 0xff, GPU_BLOCKS(&gpu) * sizeof(uint32_t)));
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
}

/* Where node `number` ran; nowhere when it did not. */
static struct tpcset ran(unsigned int number)
{
	unsigned int blocks = GPU_BLOCKS(&gpu);
	uint32_t *sms = malloc(blocks * sizeof *sms);
	struct tpcset set = {{0}};

	assert_non_null(sms);
	gpu_check(cuMemcpyDtoH_v2(sms, outputs[number], blocks * sizeof *sms));
	for (unsigned int block = 0; block < blocks; block++)
		tpcset_add(&set, sms[block] == UINT32_MAX ? TPCSET_MAX : sms[block] / gpu.topology->sms_per_tpc);
	free(sms);
	return set;
}

static void assert_ran(CUgraphExec exec, unsigned int count, const struct tpcset *set)
{
	launch(exec);
	for (unsigned int i = 0; i < count; i++) {
		struct tpcset where = ran(i);

		gpu_assert_equal(&where, set);
	}
}

static void change(const struct tpcset *set)
{
	gpu_set_partition(&gpu, set);
}

/* --- the tests -------------------------------------------------------------------------------------------------- */

static void test_follows_a_change(void **state)
{
	CUgraph graph = make_graph();
	CUgraphExec exec = instantiate(graph);

	(void)state;
	change(&before);
	assert_ran(exec, NODES, &before);
	for (unsigned int i = 0; i < 5; i++) {
		change(&after);
		assert_ran(exec, NODES, &after);
		change(&before);
		assert_ran(exec, NODES, &before);
		assert_ran(exec, NODES, &before);
	}
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

/* The driver uploads the same descriptors again: what was disabled once must not stay so. */
static void test_masks_do_not_gather(void **state)
{
	CUgraph graph = make_graph();
	CUgraphExec exec = instantiate(graph);
	struct tpcset overlapping = gpu_range(2, 5), all = gpu_all(&gpu);

	(void)state;
	change(&before);
	assert_ran(exec, NODES, &before);
	change(&overlapping);
	assert_ran(exec, NODES, &overlapping);
	change(&all);
	assert_ran(exec, NODES, &all);
	change(&before);
	assert_ran(exec, NODES, &before);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

/* As PyTorch does. */
static void test_graph_destroyed_before(void **state)
{
	CUgraph graph = make_graph();
	CUgraphExec exec = instantiate(graph);

	(void)state;
	change(&before);
	gpu_check(cuGraphDestroy(graph));
	assert_ran(exec, NODES, &before);
	change(&after);
	assert_ran(exec, NODES, &after);
	gpu_check(cuGraphExecDestroy(exec));
}

static void test_several_instances(void **state)
{
	CUgraph graph = make_graph();
	CUgraphExec first = instantiate(graph), second = instantiate(graph);

	(void)state;
	change(&before);
	gpu_check(cuGraphDestroy(graph));
	assert_ran(first, NODES, &before);
	assert_ran(second, NODES, &before);
	change(&after);
	assert_ran(second, NODES, &after);
	gpu_check(cuGraphExecDestroy(second));
	assert_ran(first, NODES, &after);
	gpu_check(cuGraphExecDestroy(first));
}

static void test_disabled_stays_disabled(void **state)
{
	CUgraph graph = make_graph();
	CUgraphExec exec = instantiate(graph);

	(void)state;
	change(&before);
	assert_ran(exec, NODES, &before);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	change(&after);
	launch(exec);
	struct tpcset first = ran(0), disabled = ran(1), last = ran(2);

	gpu_assert_equal(&first, &after);
	assert_true(tpcset_is_empty(&disabled));
	gpu_assert_equal(&last, &after);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	assert_ran(exec, NODES, &after);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

static void test_child_graph(void **state)
{
	CUgraph child = make_graph(), graph;
	CUgraphNode node;

	(void)state;
	change(&before);
	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	gpu_check(cuGraphDestroy(child));
	CUgraphExec exec = instantiate(graph);

	gpu_check(cuGraphDestroy(graph));
	assert_ran(exec, NODES, &before);
	change(&after);
	assert_ran(exec, NODES, &after);
	gpu_check(cuGraphExecDestroy(exec));
}

static void test_captured_graph(void **state)
{
	uint64_t cycles = GPU_CYCLES;
	void *arguments[] = {&outputs[0], &cycles};
	CUstream stream;
	CUgraph graph;

	(void)state;
	change(&before);
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpu_check(cuLaunchKernel(gpu.where, GPU_BLOCKS(&gpu), 1, 1, GPU_THREADS, 1, 1, 0, stream, arguments, NULL));
	gpu_check(cuStreamEndCapture(stream, &graph));
	CUgraphExec exec = instantiate(graph);

	gpu_check(cuGraphDestroy(graph));
	assert_ran(exec, 1, &before);
	change(&after);
	assert_ran(exec, 1, &after);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuStreamDestroy_v2(stream));
}

static void test_change_before_the_first_launch(void **state)
{
	CUgraph graph = make_graph();
	CUgraphExec exec;

	(void)state;
	change(&before);
	exec = instantiate(graph);
	change(&after);
	assert_ran(exec, NODES, &after);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

/* What the driver would say to a second one. */
static void test_destroying_twice_is_refused(void **state)
{
	CUgraph graph = make_graph();
	CUgraphExec exec = instantiate(graph);

	(void)state;
	gpu_check(cuGraphDestroy(graph));
	assert_int_not_equal(cuGraphDestroy(graph), CUDA_SUCCESS);
	gpu_check(cuGraphExecDestroy(exec));
}

static void test_nodes_are_counted(void **state)
{
	CUgraph graph = make_graph();
	CUgraphExec exec = instantiate(graph);
	struct segment_counters first, second;

	(void)state;
	change(&before);
	launch(exec);
	first = counters();
	launch(exec);
	second = counters();
	assert_int_equal(second.refreshed, first.refreshed);
	change(&after);
	launch(exec);
	launch(exec);
	second = counters();
	assert_int_equal(second.refreshed, first.refreshed + NODES);
	assert_int_equal(second.reasons[SEGMENT_STALE_GRAPH], first.reasons[SEGMENT_STALE_GRAPH]);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

static void cycle(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		CUgraph graph = make_graph();
		CUgraphExec exec = instantiate(graph);

		gpu_check(cuGraphDestroy(graph));
		gpu_check(cuGraphLaunch(exec, NULL));
		change(i % 2 ? &before : &after);
		gpu_check(cuGraphLaunch(exec, NULL));
		gpu_check(cuCtxSynchronize());
		gpu_check(cuGraphExecDestroy(exec));
	}
}

/* Instances come and go for ever; memory must not. */
static void test_memory_stays_flat(void **state)
{
	(void)state;
	cycle(200);
	size_t used = mallinfo2().uordblks;

	cycle(500);
	/* A graph leaked a time would be more than a hundred bytes a time. */
	assert_true(mallinfo2().uordblks < used + 50000);
}

static int set_up(void **state)
{
	(void)state;
	gpu_initialise();
	gpu_open(&gpu, 0);
	for (unsigned int i = 0; i < NODES; i++)
		outputs[i] = gpu_new_output(&gpu);
	before = gpu_range(0, 3);
	after = gpu_range(4, 9);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows_a_change),
		cmocka_unit_test(test_masks_do_not_gather),
		cmocka_unit_test(test_graph_destroyed_before),
		cmocka_unit_test(test_several_instances),
		cmocka_unit_test(test_disabled_stays_disabled),
		cmocka_unit_test(test_child_graph),
		cmocka_unit_test(test_captured_graph),
		cmocka_unit_test(test_change_before_the_first_launch),
		cmocka_unit_test(test_destroying_twice_is_refused),
		cmocka_unit_test(test_nodes_are_counted),
		cmocka_unit_test(test_memory_stays_flat),
	};

	return cmocka_run_group_tests_name("graphs", tests, set_up, NULL);
}
