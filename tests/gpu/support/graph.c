#include "../../cases.h"
#include "graph.h"

struct tpcset before, after;
CUdeviceptr outputs[NODES];
CUgraphNode nodes[NODES];

int graph_set_up(void **state)
{
	gpu_set_up(state);
	for (unsigned int i = 0; i < NODES; i++)
		outputs[i] = gpu_new_output(&gpu);
	before = gpu_range(0, 3);
	after = gpu_range(4, 9);
	return 0;
}

/* The arguments are copied when the node is added. */
CUDA_KERNEL_NODE_PARAMS graph_parameters(unsigned int number)
{
	static uint64_t cycles = GPU_CYCLES;
	static void *arguments[NODES][2];

	arguments[number][0] = &outputs[number];
	arguments[number][1] = &cycles;
	return gpu_where_node(&gpu, arguments[number]);
}

void graph_add_node(CUgraph graph, unsigned int number, const CUgraphNode *previous)
{
	const CUDA_KERNEL_NODE_PARAMS parameters = graph_parameters(number);

	gpu_check(cuGraphAddKernelNode_v2(&nodes[number], graph, previous, previous ? 1 : 0, &parameters));
}

CUgraph graph_make(void)
{
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	for (unsigned int i = 0; i < NODES; i++)
		graph_add_node(graph, i, i ? &nodes[i - 1] : NULL);
	return graph;
}

CUgraphExec graph_instantiate(CUgraph graph)
{
	CUgraphExec exec;

	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

CUgraphExec graph_instantiate_with(CUgraph graph, uint64_t flags)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {.flags = flags};
	CUgraphExec exec;

	gpu_check(cuGraphInstantiateWithParams(&exec, graph, &parameters));
	return exec;
}

void graph_end(CUgraphExec exec, CUgraph graph)
{
	gpu_check(cuGraphExecDestroy(exec));
	if (graph)
		gpu_check(cuGraphDestroy(graph));
}

void graph_replay(CUgraphExec exec)
{
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
}

static void forget(void)
{
	for (unsigned int i = 0; i < NODES; i++)
		gpu_check(cuMemsetD8_v2(outputs[i], 0xff, GPU_BLOCKS(&gpu) * sizeof(uint32_t)));
}

void graph_launch(CUgraphExec exec)
{
	forget();
	graph_replay(exec);
}

struct tpcset graph_ran(unsigned int number)
{
	unsigned int blocks = GPU_BLOCKS(&gpu);
	uint32_t *sms = malloc(blocks * sizeof *sms);

	assert_non_null(sms);
	gpu_check(cuMemcpyDtoH_v2(sms, outputs[number], blocks * sizeof *sms));
	struct tpcset set = gpu_tpcs_of(&gpu, sms, blocks);

	free(sms);
	return set;
}

void graph_assert_in(unsigned int number, struct tpcset set)
{
	gpu_assert_ran(graph_ran(number), set);
}

void graph_assert_ran(CUgraphExec exec, unsigned int count, struct tpcset set)
{
	graph_launch(exec);
	for (unsigned int i = 0; i < count; i++)
		graph_assert_in(i, set);
}

void graph_assert_follows(CUgraphExec exec, unsigned int count, struct tpcset set)
{
	gpu_set_partition(&gpu, set);
	graph_assert_ran(exec, count, set);
}

uint64_t graph_launch_changed(CUgraphExec exec, struct tpcset set, uint64_t refreshed, uint64_t stale)
{
	gpu_set_partition(&gpu, set);
	forget();
	struct segment_counters first = gpu_counters();

	graph_replay(exec);
	struct segment_counters second = gpu_counters();

	assert_int_equal(second.refreshed, first.refreshed + refreshed);
	assert_int_equal(second.reasons[SEGMENT_STALE_GRAPH], first.reasons[SEGMENT_STALE_GRAPH] + stale);
	return second.restricted - first.restricted;
}
