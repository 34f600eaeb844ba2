/*
 * Instances of CUDA graphs follow a changed partition at their next launch (docs/facts.md, "CUDA graphs"), even if the
 * graph that they were made from has been destroyed. So do nodes in child graphs. Disabled nodes stay disabled.
 */
#include "support/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <malloc.h>

/* --- the tests --------------------------------------------------------------------------------------------------- */

static void test_follows_a_change(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	(void)state;
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	for (unsigned int i = 0; i < 5; i++) {
		graph_change(&after);
		graph_assert_ran(exec, NODES, &after);
		graph_change(&before);
		graph_assert_ran(exec, NODES, &before);
		graph_assert_ran(exec, NODES, &before);
	}
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

/* Partitions that overlap; with or without other launches of this thread in between. */
static void follow_overlapping(bool with_others)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);
	struct tpcset overlapping = gpu_range(2, 5), all = gpu_all(&gpu);
	const struct tpcset *const sets[] = {&before, &overlapping, &all, &before};

	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
		graph_change(sets[i]);
		if (with_others)
			gpu_run(&gpu);
		graph_assert_ran(exec, NODES, sets[i]);
	}
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

/* The driver uploads the same descriptors again: TPCs that one mask disabled must not stay disabled in the next. */
static void test_masks_do_not_accumulate(void **state)
{
	(void)state;
	follow_overlapping(false);
}

/* A thread must not use its remembered decision of a plain launch for a graph's nodes. */
static void test_replay_after_a_plain_launch(void **state)
{
	(void)state;
	follow_overlapping(true);
}

/* As PyTorch does. */
static void test_graph_destroyed_before(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	(void)state;
	graph_change(&before);
	gpu_check(cuGraphDestroy(graph));
	graph_assert_ran(exec, NODES, &before);
	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	gpu_check(cuGraphExecDestroy(exec));
}

static void test_several_instances(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec first = graph_instantiate(graph), second = graph_instantiate(graph);

	(void)state;
	graph_change(&before);
	gpu_check(cuGraphDestroy(graph));
	graph_assert_ran(first, NODES, &before);
	graph_assert_ran(second, NODES, &before);
	graph_change(&after);
	graph_assert_ran(second, NODES, &after);
	gpu_check(cuGraphExecDestroy(second));
	graph_assert_ran(first, NODES, &after);
	gpu_check(cuGraphExecDestroy(first));
}

static uint64_t uploads(void)
{
	struct segment_counters now = gpu_counters();

	return now.restricted + now.unrestricted;
}

/* The counters count what the man page says. */
static void test_replays_are_no_uploads(void **state)
{
	CUgraphExec exec = graph_instantiate(graph_make());

	(void)state;
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	uint64_t first = uploads();

	for (int i = 0; i < 10; i++)
		gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
	assert_int_equal(uploads(), first);
	graph_change(&after);
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
	assert_true(uploads() >= first + NODES);
	gpu_check(cuGraphExecDestroy(exec));
}

static void test_disabled_stays_disabled(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	(void)state;
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	graph_change(&after);
	graph_launch(exec);
	struct tpcset first = graph_ran(0), disabled = graph_ran(1), last = graph_ran(2);

	gpu_assert_equal(&first, &after);
	assert_true(tpcset_is_empty(&disabled));
	gpu_assert_equal(&last, &after);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	graph_assert_ran(exec, NODES, &after);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

static void test_child_graph(void **state)
{
	CUgraph graph = gpu_wrap_graph(graph_make(), NULL);

	(void)state;
	graph_change(&before);
	CUgraphExec exec = graph_instantiate(graph);

	gpu_check(cuGraphDestroy(graph));
	graph_assert_ran(exec, NODES, &before);
	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	gpu_check(cuGraphExecDestroy(exec));
}

static void test_captured_graph(void **state)
{
	uint64_t cycles = GPU_CYCLES;
	void *arguments[] = {&outputs[0], &cycles};
	CUstream stream;
	CUgraph graph;

	(void)state;
	graph_change(&before);
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpu_check(cuLaunchKernel(gpu.where, GPU_BLOCKS(&gpu), 1, 1, GPU_THREADS, 1, 1, 0, stream, arguments, NULL));
	gpu_check(cuStreamEndCapture(stream, &graph));
	CUgraphExec exec = graph_instantiate(graph);

	gpu_check(cuGraphDestroy(graph));
	graph_assert_ran(exec, 1, &before);
	graph_change(&after);
	graph_assert_ran(exec, 1, &after);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuStreamDestroy_v2(stream));
}

static void test_change_before_the_first_launch(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec;

	(void)state;
	graph_change(&before);
	exec = graph_instantiate(graph);
	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

/* The result is the one that the driver would give. */
static void test_destroying_twice_is_refused(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	(void)state;
	gpu_check(cuGraphDestroy(graph));
	assert_int_not_equal(cuGraphDestroy(graph), CUDA_SUCCESS);
	gpu_check(cuGraphExecDestroy(exec));
}

static void test_nodes_are_counted(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);
	struct segment_counters first, second;

	(void)state;
	graph_change(&before);
	graph_launch(exec);
	first = gpu_counters();
	graph_launch(exec);
	second = gpu_counters();
	assert_int_equal(second.refreshed, first.refreshed);
	graph_change(&after);
	graph_launch(exec);
	graph_launch(exec);
	second = gpu_counters();
	assert_int_equal(second.refreshed, first.refreshed + NODES);
	assert_int_equal(second.reasons[SEGMENT_STALE_GRAPH], first.reasons[SEGMENT_STALE_GRAPH]);
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

static void cycle(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		CUgraph graph = graph_make();
		CUgraphExec exec = graph_instantiate(graph);

		gpu_check(cuGraphDestroy(graph));
		gpu_check(cuGraphLaunch(exec, NULL));
		graph_change(i % 2 ? &before : &after);
		gpu_check(cuGraphLaunch(exec, NULL));
		gpu_check(cuCtxSynchronize());
		gpu_check(cuGraphExecDestroy(exec));
	}
}

/* However many instances are made and destroyed, memory must not grow. The driver keeps some memory of its own: a
 * leaked graph each time would be more * than a hundred bytes a time. The simulator keeps nothing. */
static void test_memory_stays_flat(void **state)
{
	(void)state;
	cycle(200);
	size_t used = mallinfo2().uordblks;

	cycle(500);
	assert_true(mallinfo2().uordblks <= used + (gpu_is_simulated() ? 0 : 50000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows_a_change),
		cmocka_unit_test(test_masks_do_not_accumulate),
		cmocka_unit_test(test_replay_after_a_plain_launch),
		cmocka_unit_test(test_graph_destroyed_before),
		cmocka_unit_test(test_several_instances),
		cmocka_unit_test(test_replays_are_no_uploads),
		cmocka_unit_test(test_disabled_stays_disabled),
		cmocka_unit_test(test_child_graph),
		cmocka_unit_test(test_captured_graph),
		cmocka_unit_test(test_change_before_the_first_launch),
		cmocka_unit_test(test_destroying_twice_is_refused),
		cmocka_unit_test(test_nodes_are_counted),
		cmocka_unit_test(test_memory_stays_flat),
	};

	return cmocka_run_group_tests_name("graphs", tests, graph_set_up, NULL);
}
