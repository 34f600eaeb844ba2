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

uint64_t graph_stale(void)
{
	return gpu_counted(SEGMENT_STALE_GRAPH);
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
	struct tpcset set = {{0}};

	assert_non_null(sms);
	gpu_check(cuMemcpyDtoH_v2(sms, outputs[number], blocks * sizeof *sms));
	for (unsigned int block = 0; block < blocks; block++)
		tpcset_add(&set, sms[block] == UINT32_MAX ? TPCSET_MAX : sms[block] / gpu.topology->sms_per_tpc);
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

void graph_change(struct tpcset set)
{
	gpu_set_partition(&gpu, set);
}

void graph_assert_follows(CUgraphExec exec, unsigned int count, struct tpcset set)
{
	graph_change(set);
	graph_assert_ran(exec, count, set);
}

uint64_t graph_launch_changed(CUgraphExec exec, struct tpcset set, uint64_t refreshed, uint64_t stale)
{
	graph_change(set);
	forget();
	struct segment_counters first = gpu_counters();

	graph_replay(exec);
	struct segment_counters second = gpu_counters();

	assert_int_equal(second.refreshed, first.refreshed + refreshed);
	assert_int_equal(second.reasons[SEGMENT_STALE_GRAPH], first.reasons[SEGMENT_STALE_GRAPH] + stale);
	return second.restricted - first.restricted;
}

/* --- several threads --------------------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 50

static atomic_bool stop;

static void *change_all_the_time(void *unused)
{
	while (!atomic_load(&stop)) {
		graph_change(before);
		graph_change(after);
	}
	return NULL;
}

/* How many of four launches were in neither set. */
static uintptr_t count_strays(CUgraphExec exec, CUstream stream, CUdeviceptr output)
{
	uintptr_t strays = 0;

	for (unsigned int i = 0; i < 4; i++) {
		gpu_check(cuGraphLaunch(exec, stream));
		gpu_check(cuStreamSynchronize(stream));
		struct tpcset ran = gpu_read_tpcs(&gpu, output, GPU_BLOCKS(&gpu));

		strays += !tpcset_is_subset(&ran, &before) && !tpcset_is_subset(&ran, &after);
	}
	return strays;
}

static graph_maker *make_graph;

/* The output is this thread's alone. The graph goes before its instance is launched, each second time. */
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

	for (unsigned int round = 0; round < ROUNDS; round++) {
		CUgraph graph = make_graph(&parameters);
		CUgraphExec exec = graph_instantiate(graph);

		if (round % 2)
			gpu_check(cuGraphDestroy(graph));
		strays += count_strays(exec, stream, output);
		graph_end(exec, round % 2 ? NULL : graph);
	}
	gpu_check(cuMemFree_v2(output));
	gpu_check(cuStreamDestroy_v2(stream));
	return (void *)strays;
}

void graph_use_while_it_changes(graph_maker *make)
{
	make_graph = make;
	graph_change(before);
	atomic_store(&stop, false);
	pthread_t changer = thread_start(change_all_the_time, NULL);

	threads_run(THREADS, use_graphs, NULL, 0);
	atomic_store(&stop, true);
	pthread_join(changer, NULL);
}
