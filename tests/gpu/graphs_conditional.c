/*
 * The bodies of conditional nodes of graphs follow a changed partition: of every kind, at every depth, whether they run
 * or not. No kernel changes a condition: each launch uses the value that the handle was made with.
 *
 * gpus: h200 turing blackwell
 */
#include "../cases.h"
#include "support/graph.h"

#include <malloc.h>

static CUgraph new_graph(void)
{
	CUgraph graph;

	if (!cuGraphConditionalHandleCreate || !cuGraphAddNode_v2)
		gpu_skip("this driver has no conditional nodes");
	gpu_check(cuGraphCreate(&graph, 0));
	return graph;
}

static __thread CUgraphNode last_conditional;

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

/* The instance has `count` nodes that can be kernels; the first `running` of the kernels run. */
static void assert_follows(CUgraphExec exec, unsigned int running, uint64_t count)
{
	graph_launch(exec);
	for (unsigned int i = 0; i < 4; i++) {
		struct tpcset set = i % 2 ? after : before;

		graph_launch_changed(exec, set, count, 0);
		for (unsigned int number = 0; number < running; number++)
			graph_assert_in(number, set);
	}
}

/* The same for a graph, which is instantiated for this and destroyed. */
static void assert_graph_follows(CUgraph graph, unsigned int running, uint64_t count)
{
	CUgraphExec exec;

	gpu_set_partition(&gpu, after);
	exec = graph_instantiate(graph);
	assert_follows(exec, running, count);
	graph_end(exec, graph);
}

TEST(nested)
{
	CUgraph graph = new_graph(), body = graph;

	for (unsigned int i = 0; i < NODES; i++) {
		body = add_if(graph, body);
		graph_add_node(body, i, NULL);
	}
	assert_graph_follows(graph, NODES, NODES);
}

TEST(first_version_of_add_node)
{
	CUgraph graph = new_graph();
	CUgraphNodeParams parameters = gpu_conditional_node(&gpu, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);
	CUgraphNode node;

	if (!cuGraphAddNode) {
		gpu_check(cuGraphDestroy(graph));
		gpu_skip("this driver has no cuGraphAddNode");
	}
	gpu_check(cuGraphAddNode(&node, graph, NULL, 0, &parameters));
	graph_add_node(parameters.conditional.phGraph_out[0], 0, NULL);
	assert_graph_follows(graph, 1, 1);
}

/* Its kernels follow, although they never run. */
TEST(loop_without_a_turn)
{
	CUgraph graph = new_graph();

	graph_add_node(add(graph, graph, CU_GRAPH_COND_TYPE_WHILE, 1, 0)[0], 0, NULL);
	CUgraphExec exec = graph_instantiate(graph);

	assert_follows(exec, 0, 1);
	graph_assert_in(0, (struct tpcset){{0}});
	graph_end(exec, graph);
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
		graph_assert_in(i, i == chosen ? after : (struct tpcset){{0}});
	graph_end(exec, graph);
}

TEST(else_and_switch)
{
	assert_one_of_several(CU_GRAPH_COND_TYPE_IF, 2, 0, 1);
	assert_one_of_several(CU_GRAPH_COND_TYPE_SWITCH, NODES, 1, 1);
}

TEST(disabled_stays_disabled)
{
	CUgraph graph = new_graph();
	CUgraphExec exec;

	graph_add_node(add_if(graph, graph), 0, NULL);
	gpu_set_partition(&gpu, before);
	exec = graph_instantiate(graph);
	graph_assert_ran(exec, 1, before);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[0], 0));
	graph_launch_changed(exec, after, 1, 0);
	graph_assert_in(0, (struct tpcset){{0}});
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[0], 1));
	graph_assert_ran(exec, 1, after);
	graph_end(exec, graph);
}

/* All nodes inside it are counted, too. */
TEST(destroyed_conditional_node_is_counted)
{
	CUgraph graph = new_graph(), body;
	CUgraphNode node;
	CUgraphExec exec;

	graph_add_node(graph, 0, NULL);
	body = add_if(graph, graph);
	node = last_conditional;
	graph_add_node(body, 1, NULL);
	graph_add_node(add_if(graph, body), 2, NULL);
	gpu_set_partition(&gpu, before);
	exec = graph_instantiate(graph);
	graph_assert_ran(exec, NODES, before);
	gpu_check(cuGraphDestroyNode(node));
	graph_launch_changed(exec, after, 1, 2);
	graph_assert_in(0, after);
	graph_launch_changed(exec, before, 1, 2);
	graph_end(exec, graph);
}

/* Like a node that was added before nvtaskset attached to the program. It is counted once for everything inside it. */
TEST(node_that_was_not_announced_is_counted)
{
	if (!gpu_is_simulated())
		gpu_skip("the hardware's driver announces every node");
	CUgraph graph = new_graph();

	assert_int_equal(setenv("SIM_FAULTS", "unheard-nodes", 1), 0);
	graph_add_node(add_if(graph, graph), 0, NULL);
	assert_int_equal(unsetenv("SIM_FAULTS"), 0);
	graph_add_node(add_if(graph, graph), 1, NULL);
	gpu_set_partition(&gpu, before);
	CUgraphExec exec = graph_instantiate(graph);

	graph_assert_ran(exec, 2, before);
	graph_launch_changed(exec, after, 1, 1);
	graph_assert_in(0, before);
	graph_assert_in(1, after);
	graph_end(exec, graph);
}

/* In a body in a body. */
static CUgraph make_nested(const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	CUgraph graph = new_graph(), body = add_if(graph, add_if(graph, graph));
	CUgraphNode node;

	gpu_check(cuGraphAddKernelNode_v2(&node, body, NULL, 0, kernel));
	return graph;
}

static atomic_bool stop;

static void *change_all_the_time(void *unused)
{
	while (!atomic_load(&stop)) {
		gpu_set_partition(&gpu, before);
		gpu_set_partition(&gpu, after);
	}
	return NULL;
}

/* How many launches were in neither set. The output is this thread's alone. The graph goes before its instance is launched, each
 * second time. */
static void *use_graphs(void *unused)
{
	CUDA_KERNEL_NODE_PARAMS parameters = gpu_where_node(&gpu, NULL);
	CUdeviceptr output;
	uint64_t cycles = GPU_CYCLES;
	void *arguments[] = {&output, &cycles};
	uintptr_t strays = 0;

	gpu_check(cuCtxSetCurrent(gpu.context));
	output = gpu_new_output(&gpu);
	parameters.kernelParams = arguments;
	CUstream stream = gpu_new_stream();

	for (unsigned int round = 0; round < 50; round++) {
		CUgraph graph = make_nested(&parameters);
		CUgraphExec exec = graph_instantiate(graph);

		if (round % 2)
			gpu_check(cuGraphDestroy(graph));
		for (unsigned int i = 0; i < 4; i++) {
			gpu_check(cuGraphLaunch(exec, stream));
			gpu_check(cuStreamSynchronize(stream));
			struct tpcset ran = gpu_read_tpcs(&gpu, output, GPU_BLOCKS(&gpu));

			strays += !tpcset_is_subset(&ran, &before) && !tpcset_is_subset(&ran, &after);
		}
		graph_end(exec, round % 2 ? NULL : graph);
	}
	gpu_check(cuMemFree_v2(output));
	gpu_check(cuStreamDestroy_v2(stream));
	return (void *)strays;
}

TEST(several_threads)
{
	uint64_t stale = gpu_counted(SEGMENT_STALE_GRAPH);

	gpu_check(cuGraphDestroy(new_graph()));
	gpu_set_partition(&gpu, before);
	pthread_t changer = thread_start(change_all_the_time, NULL);

	threads_run(4, use_graphs, NULL, 0);
	atomic_store(&stop, true);
	pthread_join(changer, NULL);
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), stale);
}

RUN_TESTS_IN(graph_set_up, NULL, NULL, NULL)
