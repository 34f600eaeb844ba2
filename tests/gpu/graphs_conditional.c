/*
 * The bodies of conditional nodes of graphs follow a changed partition: of every kind, at every depth, whether they run
 * or not. No kernel changes a condition: each launch uses the value that the handle was made with.
 */
#include "support/graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>

/* --- making them ------------------------------------------------------------------------------------------------- */

static CUgraph new_graph(void)
{
	CUgraph graph;

	if (!cuGraphConditionalHandleCreate || !cuGraphAddNode_v2)
		gpu_skip("this driver has no conditional nodes");
	gpu_check(cuGraphCreate(&graph, 0));
	return graph;
}

static CUgraphNode last_conditional;

/* Adds a conditional node to `graph`, which is `root` or lies in it. Returns its bodies, which are empty. */
static CUgraph *add(CUgraph root, CUgraph graph, int type, unsigned int bodies, unsigned int value)
{
	CUgraphNodeParams parameters = gpu_conditional_node(&gpu, root, type, bodies, value);

	gpu_check(cuGraphAddNode_v2(&last_conditional, graph, NULL, NULL, 0, &parameters));
	return parameters.conditional.phGraph_out;
}

/* Adds a conditional node whose only body runs at each launch. */
static CUgraph add_if(CUgraph root, CUgraph graph)
{
	return *add(root, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);
}

/* A graph whose only node is conditional, with a body of one kernel that runs at each launch. */
static CUgraph make_if(void)
{
	CUgraph graph = new_graph();

	graph_add_node(add_if(graph, graph), 0, NULL);
	return graph;
}

static void end(CUgraphExec exec, CUgraph graph)
{
	gpu_check(cuGraphExecDestroy(exec));
	if (graph)
		gpu_check(cuGraphDestroy(graph));
}

/* --- asking ------------------------------------------------------------------------------------------------------ */

/* Launches it after a change to `set`: `refreshed` nodes are uploaded again, `stale` nodes cannot be. */
static void launch_changed(CUgraphExec exec, const struct tpcset *set, uint64_t refreshed, uint64_t stale)
{
	struct segment_counters first, second;

	graph_change(set);
	first = gpu_counters();
	graph_launch(exec);
	second = gpu_counters();
	assert_int_equal(second.refreshed, first.refreshed + refreshed);
	assert_int_equal(second.reasons[SEGMENT_STALE_GRAPH], first.reasons[SEGMENT_STALE_GRAPH] + stale);
}

static void assert_in(unsigned int number, const struct tpcset *set)
{
	struct tpcset ran = graph_ran(number);

	gpu_assert_equal(&ran, set);
}

/* The instance has `count` nodes that can be kernels; the first `running` of the kernels run. */
static void assert_follows(CUgraphExec exec, unsigned int running, uint64_t count)
{
	graph_launch(exec);
	for (unsigned int i = 0; i < 4; i++) {
		const struct tpcset *set = i % 2 ? &after : &before;

		launch_changed(exec, set, count, 0);
		for (unsigned int number = 0; number < running; number++)
			assert_in(number, set);
	}
}

/* The same for a graph, which is instantiated for this and destroyed. */
static void assert_graph_follows(CUgraph graph, unsigned int running, uint64_t count)
{
	CUgraphExec exec;

	graph_change(&after);
	exec = graph_instantiate(graph);
	assert_follows(exec, running, count);
	end(exec, graph);
}

/* --- kinds ------------------------------------------------------------------------------------------------------- */

static void test_body_follows(void **state)
{
	(void)state;
	assert_graph_follows(make_if(), 1, 1);
}

static void test_kernels_around_it(void **state)
{
	CUgraph graph = new_graph();

	(void)state;
	graph_add_node(graph, 0, NULL);
	graph_add_node(add_if(graph, graph), 1, NULL);
	graph_add_node(graph, 2, &last_conditional);
	assert_graph_follows(graph, NODES, NODES);
}

static void test_several(void **state)
{
	CUgraph graph = new_graph();

	(void)state;
	for (unsigned int i = 0; i < NODES; i++)
		graph_add_node(add_if(graph, graph), i, NULL);
	assert_graph_follows(graph, NODES, NODES);
}

static void test_nested(void **state)
{
	CUgraph graph = new_graph(), body = graph;

	(void)state;
	for (unsigned int i = 0; i < NODES; i++) {
		body = add_if(graph, body);
		graph_add_node(body, i, NULL);
	}
	assert_graph_follows(graph, NODES, NODES);
}

static void test_child_graph_in_a_body(void **state)
{
	CUgraph graph = new_graph(), child = graph_make();
	CUgraphNode node;

	(void)state;
	gpu_check(cuGraphAddChildGraphNode(&node, add_if(graph, graph), NULL, 0, child));
	gpu_check(cuGraphDestroy(child));
	assert_graph_follows(graph, NODES, NODES);
}

static void test_first_version_of_add_node(void **state)
{
	CUgraph graph = new_graph();
	CUgraphNodeParams parameters = gpu_conditional_node(&gpu, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);
	CUgraphNode node;

	(void)state;
	if (!cuGraphAddNode) {
		gpu_check(cuGraphDestroy(graph));
		gpu_skip("this driver has no cuGraphAddNode");
	}
	gpu_check(cuGraphAddNode(&node, graph, NULL, 0, &parameters));
	graph_add_node(parameters.conditional.phGraph_out[0], 0, NULL);
	assert_graph_follows(graph, 1, 1);
}

/* Its kernels follow, although they never run. */
static void test_loop_without_a_turn(void **state)
{
	CUgraph graph = new_graph();

	(void)state;
	graph_add_node(add(graph, graph, CU_GRAPH_COND_TYPE_WHILE, 1, 0)[0], 0, NULL);
	CUgraphExec exec = graph_instantiate(graph);

	assert_follows(exec, 0, 1);
	struct tpcset ran = graph_ran(0);

	assert_true(tpcset_is_empty(&ran));
	end(exec, graph);
}

/* A node with several bodies, one of which runs; from CUDA 12.8 on. */
static void assert_one_of_several(int type, unsigned int bodies, unsigned int value, unsigned int chosen)
{
	CUgraph graph = new_graph();
	CUgraphNodeParams parameters = gpu_conditional_node(&gpu, graph, type, bodies, value);

	if (cuGraphAddNode_v2(&last_conditional, graph, NULL, NULL, 0, &parameters) != CUDA_SUCCESS) {
		gpu_check(cuGraphDestroy(graph));
		gpu_skip("this driver has no such nodes");
	}
	for (unsigned int i = 0; i < bodies; i++)
		graph_add_node(parameters.conditional.phGraph_out[i], i, NULL);
	CUgraphExec exec = graph_instantiate(graph);

	assert_follows(exec, 0, bodies);
	for (unsigned int i = 0; i < bodies; i++)
		assert_in(i, i == chosen ? &after : &(struct tpcset){{0}});
	end(exec, graph);
}

static void test_else(void **state)
{
	(void)state;
	assert_one_of_several(CU_GRAPH_COND_TYPE_IF, 2, 0, 1);
}

static void test_switch(void **state)
{
	(void)state;
	assert_one_of_several(CU_GRAPH_COND_TYPE_SWITCH, NODES, 1, 1);
}

/* --- masks ------------------------------------------------------------------------------------------------------- */

static void test_masks_do_not_accumulate(void **state)
{
	struct tpcset overlapping = gpu_range(2, 5), all;
	CUgraph graph = make_if();
	CUgraphExec exec;

	(void)state;
	all = gpu_all(&gpu);
	graph_change(&before);
	exec = graph_instantiate(graph);
	graph_assert_ran(exec, 1, &before);
	graph_change(&overlapping);
	graph_assert_ran(exec, 1, &overlapping);
	graph_change(&all);
	graph_assert_ran(exec, 1, &all);
	graph_change(&before);
	graph_assert_ran(exec, 1, &before);
	end(exec, graph);
}

static void test_disabled_stays_disabled(void **state)
{
	CUgraph graph = make_if();
	CUgraphExec exec;

	(void)state;
	graph_change(&before);
	exec = graph_instantiate(graph);
	graph_assert_ran(exec, 1, &before);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[0], 0));
	launch_changed(exec, &after, 1, 0);
	assert_in(0, &(struct tpcset){{0}});
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[0], 1));
	graph_assert_ran(exec, 1, &after);
	end(exec, graph);
}

/* A launch that was not waited for may still run while the nodes are uploaded again for the next one. */
static void test_changed_while_it_runs(void **state)
{
	CUgraph graph = make_if();
	CUgraphExec exec;

	(void)state;
	graph_change(&before);
	exec = graph_instantiate(graph);
	graph_assert_ran(exec, 1, &before);
	for (unsigned int i = 0; i < 100; i++) {
		graph_change(i % 2 ? &before : &after);
		gpu_check(cuGraphLaunch(exec, NULL));
		gpu_check(cuGraphLaunch(exec, NULL));
	}
	gpu_check(cuCtxSynchronize());
	graph_assert_ran(exec, 1, &before);
	end(exec, graph);
}

/* --- graphs that change ------------------------------------------------------------------------------------------ */

/* As PyTorch does. */
static void test_graph_destroyed_before(void **state)
{
	CUgraph graph = make_if();
	CUgraphExec exec;

	(void)state;
	graph_change(&before);
	exec = graph_instantiate(graph);
	gpu_check(cuGraphDestroy(graph));
	assert_follows(exec, 1, 1);
	end(exec, NULL);
}

static void test_instantiated_again(void **state)
{
	CUgraph graph = make_if();
	CUgraphExec exec, second;

	(void)state;
	graph_change(&before);
	exec = graph_instantiate(graph);
	assert_int_equal(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_follows(exec, 1, 1);
	gpu_check(cuGraphExecDestroy(exec));
	assert_graph_follows(graph, 1, 1);
}

static void test_updated(void **state)
{
	CUgraph graph = make_if(), other = make_if();
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec;

	(void)state;
	graph_change(&before);
	exec = graph_instantiate(graph);
	assert_follows(exec, 1, 1);
	gpu_check(cuGraphExecUpdate_v2(exec, graph, &info));
	assert_follows(exec, 1, 1);
	gpu_check(cuGraphExecUpdate_v2(exec, other, &info));
	gpu_check(cuGraphDestroy(other));
	assert_follows(exec, 1, 1);
	end(exec, graph);
}

static void test_destroyed_node_in_a_body_is_counted(void **state)
{
	CUgraph graph = new_graph();
	CUgraph body = add_if(graph, graph);
	CUgraphExec exec;

	(void)state;
	graph_add_node(body, 0, NULL);
	graph_add_node(body, 1, NULL);
	exec = graph_instantiate(graph);
	graph_launch(exec);
	gpu_check(cuGraphDestroyNode(nodes[1]));
	launch_changed(exec, &before, 1, 1);
	launch_changed(exec, &after, 1, 1);
	end(exec, graph);
}

/* All nodes inside it are counted, too. */
static void test_destroyed_conditional_node_is_counted(void **state)
{
	CUgraph graph = new_graph(), body;
	CUgraphNode node;
	CUgraphExec exec;

	(void)state;
	graph_add_node(graph, 0, NULL);
	body = add_if(graph, graph);
	node = last_conditional;
	graph_add_node(body, 1, NULL);
	graph_add_node(add_if(graph, body), 2, NULL);
	graph_change(&before);
	exec = graph_instantiate(graph);
	graph_assert_ran(exec, NODES, &before);
	gpu_check(cuGraphDestroyNode(node));
	launch_changed(exec, &after, 1, 2);
	assert_in(0, &after);
	launch_changed(exec, &before, 1, 2);
	end(exec, graph);
}

/* Like a node that was added before nvtaskset attached to the program. It is counted once for everything inside it. */
static void test_node_that_was_not_announced_is_counted(void **state)
{
	CUgraph graph;
	CUgraphExec exec;

	(void)state;
	if (!gpu_is_simulated())
		gpu_skip("the hardware's driver announces every node");
	graph = new_graph();
	assert_int_equal(setenv("SIM_FAULTS", "unheard-nodes", 1), 0);
	graph_add_node(add_if(graph, graph), 0, NULL);
	assert_int_equal(unsetenv("SIM_FAULTS"), 0);
	graph_add_node(add_if(graph, graph), 1, NULL);
	graph_change(&before);
	exec = graph_instantiate(graph);
	graph_assert_ran(exec, 2, &before);
	launch_changed(exec, &after, 1, 1);
	assert_in(0, &before);
	assert_in(1, &after);
	end(exec, graph);
}

/* Data of a destroyed node must not be used for a new one with the same handle. */
static void test_nodes_come_and_go(void **state)
{
	CUgraph graph;

	(void)state;
	/* Seen with an H200, 580.159.04. The graph itself is fine, but a handle of each destroyed node is left in
	 * it. */
	if (!gpu_is_simulated())
		gpu_skip("the driver does not instantiate a graph that conditional nodes were destroyed in");
	graph = new_graph();
	for (unsigned int i = 0; i < 20; i++) {
		CUgraph body = add_if(graph, graph);
		CUgraphNode node = last_conditional;

		graph_add_node(add_if(graph, body), 0, NULL);
		if (i < 19)
			gpu_check(cuGraphDestroyNode(node));
	}
	assert_graph_follows(graph, 1, 1);
}

/* --- several threads --------------------------------------------------------------------------------------------- */

#define ROUNDS 50

static CUDA_KERNEL_NODE_PARAMS shared_parameters; /* but for the arguments */

/* A graph with a kernel in a body in a body. */
static CUgraph make_nested(const CUDA_KERNEL_NODE_PARAMS *parameters)
{
	CUgraph graph, body;
	CUgraphNode node;

	gpu_check(cuGraphCreate(&graph, 0));
	body = graph;
	for (unsigned int level = 0; level < 2; level++) {
		CUgraphNodeParams conditional = gpu_conditional_node(&gpu, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);

		gpu_check(cuGraphAddNode_v2(&node, body, NULL, NULL, 0, &conditional));
		body = conditional.conditional.phGraph_out[0];
	}
	gpu_check(cuGraphAddKernelNode_v2(&node, body, NULL, 0, parameters));
	return graph;
}

/* Makes, launches and destroys graphs, whose output is this thread's alone. How many launches were in neither set. */
static void *use_graphs(void *unused)
{
	uint64_t cycles = GPU_CYCLES;
	CUdeviceptr output;
	void *arguments[] = {&output, &cycles};
	CUDA_KERNEL_NODE_PARAMS parameters = shared_parameters;
	uintptr_t strays = 0;
	CUstream stream;

	(void)unused;
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	output = gpu_new_output(&gpu);
	parameters.kernelParams = arguments;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		CUgraph graph = make_nested(&parameters);
		CUgraphExec exec = graph_instantiate(graph);

		if (round % 2)
			gpu_check(cuGraphDestroy(graph));
		strays += graph_count_strays(exec, stream, output);
		end(exec, round % 2 ? NULL : graph);
	}
	gpu_check(cuMemFree_v2(output));
	gpu_check(cuStreamDestroy_v2(stream));
	return (void *)strays;
}

static void test_several_threads(void **state)
{
	uint64_t stale = graph_stale();

	(void)state;
	gpu_check(cuGraphDestroy(new_graph()));
	graph_change(&before);
	shared_parameters = graph_parameters(0);
	graph_use_while_it_changes(use_graphs);
	assert_int_equal(graph_stale(), stale);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void cycle(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		CUgraph graph = new_graph();
		CUgraph body = add_if(graph, graph);
		CUgraphExec exec;

		graph_add_node(body, 0, NULL);
		graph_add_node(add_if(graph, body), 1, NULL);
		exec = graph_instantiate(graph);
		/* The graph may be destroyed before the instance or after it. */
		if (i % 2)
			gpu_check(cuGraphDestroy(graph));
		gpu_check(cuGraphLaunch(exec, NULL));
		graph_change(i % 4 < 2 ? &before : &after);
		gpu_check(cuGraphLaunch(exec, NULL));
		gpu_check(cuCtxSynchronize());
		end(exec, i % 2 ? NULL : graph);
	}
}

/* As in graphs.c: the driver keeps some memory of its own. */
static void test_memory_stays_flat(void **state)
{
	(void)state;
	cycle(200);
	size_t used = mallinfo2().uordblks;

	cycle(500);
	assert_true(mallinfo2().uordblks <= used + (gpu_is_simulated() ? 0 : 50000));
}

/* All exist at the same time, so that no handle is given again: that would hide an entry that was not removed. */
static void make_and_destroy(unsigned int count)
{
	CUgraph *graphs = malloc(count * sizeof *graphs);

	assert_non_null(graphs);
	for (unsigned int i = 0; i < count; i++) {
		graphs[i] = new_graph();
		add_if(graphs[i], add_if(graphs[i], graphs[i]));
	}
	for (unsigned int i = 0; i < count; i++)
		gpu_check(cuGraphDestroy(graphs[i]));
	free(graphs);
}

static void test_many_leave_nothing(void **state)
{
	(void)state;
	if (!gpu_is_simulated())
		gpu_skip("what the hardware's driver keeps cannot be told from what we do");
	make_and_destroy(20);
	size_t used = mallinfo2().uordblks;

	make_and_destroy(1000);
	assert_true(mallinfo2().uordblks <= used + 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_body_follows),
		cmocka_unit_test(test_kernels_around_it),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_child_graph_in_a_body),
		cmocka_unit_test(test_first_version_of_add_node),
		cmocka_unit_test(test_loop_without_a_turn),
		cmocka_unit_test(test_else),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_masks_do_not_accumulate),
		cmocka_unit_test(test_disabled_stays_disabled),
		cmocka_unit_test(test_changed_while_it_runs),
		cmocka_unit_test(test_graph_destroyed_before),
		cmocka_unit_test(test_instantiated_again),
		cmocka_unit_test(test_updated),
		cmocka_unit_test(test_destroyed_node_in_a_body_is_counted),
		cmocka_unit_test(test_destroyed_conditional_node_is_counted),
		cmocka_unit_test(test_node_that_was_not_announced_is_counted),
		cmocka_unit_test(test_nodes_come_and_go),
		cmocka_unit_test(test_several_threads),
		cmocka_unit_test(test_memory_stays_flat),
		cmocka_unit_test(test_many_leave_nothing),
	};

	return cmocka_run_group_tests_name("graphs_conditional", tests, graph_set_up, NULL);
}
