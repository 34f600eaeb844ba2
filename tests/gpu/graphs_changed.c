/*
 * Graphs that change after they were made, or are made in unusual ways: they follow a changed partition, except for
 * nodes that we cannot reach, each of which is counted.
 */
#include "support/graph.h"
#include "support/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

static void end(CUgraphExec exec, CUgraph graph)
{
	gpu_check(cuGraphExecDestroy(exec));
	if (graph)
		gpu_check(cuGraphDestroy(graph));
}

/* --- instances that are updated ---------------------------------------------------------------------------------- */

/* Updates from another graph with other parameters, since the driver would otherwise have nothing to do. */
static void update(CUgraphExec exec, unsigned int blocks)
{
	CUgraphExecUpdateResultInfo info;
	CUgraphNode added[NODES];
	CUgraph other;

	gpu_check(cuGraphCreate(&other, 0));
	for (unsigned int i = 0; i < NODES; i++) {
		CUDA_KERNEL_NODE_PARAMS parameters = graph_parameters(i);

		parameters.gridDimX = blocks;
		gpu_check(cuGraphAddKernelNode_v2(&added[i], other, i ? &added[i - 1] : NULL, i ? 1 : 0, &parameters));
	}
	gpu_check(cuGraphExecUpdate_v2(exec, other, &info));
	gpu_check(cuGraphDestroy(other));
}

static void follow_through_updates(CUgraphExec exec)
{
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	update(exec, GPU_BLOCKS(&gpu) - 8);
	graph_assert_ran(exec, NODES, &before);
	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	update(exec, GPU_BLOCKS(&gpu) - 16);
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
}

static void test_updated_by_another_graph(void **state)
{
	uint64_t stale = graph_stale();
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	(void)state;
	follow_through_updates(exec);
	assert_int_equal(graph_stale(), stale);
	end(exec, graph);
}

static void test_updated_when_its_graph_is_gone(void **state)
{
	uint64_t stale = graph_stale();
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	(void)state;
	gpu_check(cuGraphDestroy(graph));
	follow_through_updates(exec);
	assert_int_equal(graph_stale(), stale);
	end(exec, NULL);
}

/* The largest virtual GPC from this one on that holds a cluster; empty if there is none. */
static struct tpcset room_for_cluster(unsigned int from, unsigned int blocks)
{
	struct tpcset group = {{0}};
	unsigned int number = from;

	while (number < gpu.topology->gpc_limit && tpcset_count(&group) * gpu.topology->sms_per_tpc < blocks)
		group = topology_virtual_gpc(gpu.topology, number++);
	return tpcset_count(&group) * gpu.topology->sms_per_tpc < blocks ? (struct tpcset){{0}} : group;
}

static CUgraph capture_cluster(unsigned int blocks)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&outputs[0], &cycles};
	CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {blocks, 1, 1}};
	CUlaunchConfig config = {.gridDimX = 4 * blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = GPU_THREADS,
	                         .blockDimY = 1, .blockDimZ = 1, .attrs = &cluster, .numAttrs = 1};
	CUgraph graph;

	gpu_check(cuStreamCreate(&config.hStream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(config.hStream, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpu_check(cuLaunchKernelEx(&config, gpu.where, parameters, NULL));
	gpu_check(cuStreamEndCapture(config.hStream, &graph));
	gpu_check(cuStreamDestroy_v2(config.hStream));
	return graph;
}

/* The driver returns an error for disabling such a node, but disables it. */
static void test_clusters_that_are_not_portable(void **state)
{
	const unsigned int blocks = 16;
	uint64_t stale = graph_stale();
	struct tpcset first = room_for_cluster(0, blocks), second, ran;

	(void)state;
	if (gpu.topology->compute_major < 9 || tpcset_is_empty(&first))
		gpu_skip("this GPU has no room for such clusters");
	gpu_check(cuFuncSetAttribute(gpu.where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	second = room_for_cluster(gpu.topology->tpcs[tpcset_next(&first, 0)].virtual_gpc + 1u, blocks);
	graph_change(&first);
	CUgraph graph = capture_cluster(blocks);
	CUgraphExec exec = graph_instantiate(graph);

	for (unsigned int i = 0; i < 4; i++) {
		const struct tpcset *set = i % 2 && !tpcset_is_empty(&second) ? &second : &first;

		graph_change(set);
		graph_launch(exec);
		ran = graph_ran(0);
		assert_false(tpcset_is_empty(&ran));
		assert_true(tpcset_is_subset(&ran, set));
	}
	assert_int_equal(graph_stale(), stale);
	end(exec, graph);
	gpu_check(cuFuncSetAttribute(gpu.where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0));
}

static void test_other_parameters(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);
	CUDA_KERNEL_NODE_PARAMS other = graph_parameters(1);

	(void)state;
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	other.gridDimX -= 8;
	gpu_check(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &other));
	graph_assert_ran(exec, NODES, &before);
	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	end(exec, graph);
}

/* --- graphs whose nodes are added and destroyed ------------------------------------------------------------------ */

static void test_destroyed_node_is_counted(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);
	struct segment_counters first, second;

	(void)state;
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	gpu_check(cuGraphDestroyNode(nodes[2]));
	graph_change(&after);
	first = gpu_counters();
	graph_assert_ran(exec, 2, &after);
	second = gpu_counters();
	assert_int_equal(second.refreshed, first.refreshed + 2);
	assert_int_equal(second.reasons[SEGMENT_STALE_GRAPH], first.reasons[SEGMENT_STALE_GRAPH] + 1);
	graph_launch(exec);
	assert_int_equal(graph_stale(), second.reasons[SEGMENT_STALE_GRAPH]);
	end(exec, graph);
}

static void test_destroyed_child_graph_is_counted(void **state)
{
	CUgraphNode node;
	CUgraph graph = gpu_wrap_graph(graph_make(), &node);

	(void)state;
	graph_change(&before);
	CUgraphExec exec = graph_instantiate(graph);

	graph_launch(exec);
	gpu_check(cuGraphDestroyNode(node));
	graph_change(&after);
	uint64_t stale = graph_stale();

	graph_launch(exec);
	assert_int_equal(graph_stale(), stale + NODES);
	end(exec, graph);
}

/* It is no node of the instance. */
static void test_node_added_later(void **state)
{
	uint64_t stale = graph_stale();
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	(void)state;
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	graph_add_node(graph, 0, NULL);
	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	assert_int_equal(graph_stale(), stale);
	end(exec, graph);
}

static void test_child_of_a_child(void **state)
{
	uint64_t stale = graph_stale();
	CUgraph graph = gpu_wrap_graph(gpu_wrap_graph(graph_make(), NULL), NULL);

	(void)state;
	CUgraphExec exec = graph_instantiate(graph);

	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	assert_int_equal(graph_stale(), stale);
	end(exec, graph);
}

/* --- other nodes ------------------------------------------------------------------------------------------------- */

/* Uploading it again would undo what kernels have changed in it. */
static void test_device_updatable_node_is_left_alone(void **state)
{
	CUlaunchAttributeValue updatable = {.deviceUpdatableKernelNode = {.deviceUpdatable = 1}};
	CUgraph graph = graph_make();
	struct segment_counters first, second;

	(void)state;
	if (cuGraphKernelNodeSetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &updatable) !=
	    CUDA_SUCCESS) {
		gpu_check(cuGraphDestroy(graph));
		gpu_skip("this driver has no nodes that kernels update");
	}
	graph_change(&before);
	CUgraphExec exec = graph_instantiate(graph);

	graph_assert_ran(exec, NODES, &before);
	graph_change(&after);
	first = gpu_counters();
	graph_launch(exec);
	second = gpu_counters();
	assert_int_equal(second.refreshed, first.refreshed + NODES - 1);
	assert_int_equal(second.reasons[SEGMENT_STALE_GRAPH], first.reasons[SEGMENT_STALE_GRAPH] + 1);
	end(exec, graph);
}

/* --- ways to make and to launch ---------------------------------------------------------------------------------- */

static CUgraphExec instantiate_with(CUgraph graph, uint64_t flags)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {.flags = flags};
	CUgraphExec exec;

	gpu_check(cuGraphInstantiateWithParams(&exec, graph, &parameters));
	return exec;
}

static void test_uploaded_as_it_is_made(void **state)
{
	CUgraph graph = graph_make();

	(void)state;
	graph_change(&before);
	CUgraphExec exec = instantiate_with(graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);

	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	end(exec, graph);
}

/* After cuGraphUpload the launch has nothing left to upload. */
static void test_uploaded_after_a_change(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);
	struct segment_counters first, second;

	(void)state;
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	graph_change(&after);
	first = gpu_counters();
	gpu_check(cuGraphUpload(exec, NULL));
	second = gpu_counters();
	assert_int_equal(second.refreshed, first.refreshed + NODES);
	graph_assert_ran(exec, NODES, &after);
	assert_int_equal(gpu_counters().refreshed, second.refreshed);
	end(exec, graph);
}

/* Launches by kernels are not announced. */
static void test_launched_by_kernels_is_counted(void **state)
{
	uint64_t stale = graph_stale();
	CUgraph graph = graph_make();
	CUgraphExec exec;

	(void)state;
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
	assert_int_equal(graph_stale(), stale + 1);
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	graph_change(&after);
	graph_assert_ran(exec, NODES, &after);
	end(exec, graph);
}

/* Our calls of the driver at a launch must neither break the capture off nor be recorded. */
static void test_capture_in_another_stream(void **state)
{
	CUgraph graph = graph_make(), captured;
	CUgraphExec exec = graph_instantiate(graph);
	CUstream capturing, launching;
	size_t count = 0;

	(void)state;
	graph_change(&before);
	graph_assert_ran(exec, NODES, &before);
	gpu_check(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamCreate(&launching, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL));
	gpu_check(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, capturing, NULL, NULL));
	graph_change(&after);
	gpu_check(cuGraphLaunch(exec, launching));
	gpu_check(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, capturing, NULL, NULL));
	gpu_check(cuStreamEndCapture(capturing, &captured));
	gpu_check(cuStreamSynchronize(launching));
	for (unsigned int i = 0; i < NODES; i++) {
		struct tpcset ran = graph_ran(i);

		gpu_assert_equal(&ran, &after);
	}
	gpu_check(cuGraphGetNodes(captured, NULL, &count));
	assert_int_equal(count, 2);
	gpu_check(cuGraphDestroy(captured));
	gpu_check(cuStreamDestroy_v2(capturing));
	gpu_check(cuStreamDestroy_v2(launching));
	end(exec, graph);
}

/* --- changes while nodes are uploaded ---------------------------------------------------------------------------- */

static bool change_at_next_upload;

/* A subscriber's callback for an upload comes after the library's. */
static void change_once(int domain, int id, const uint64_t *words)
{
	(void)words;
	if (domain == LAUNCHES && id == BEFORE_UPLOAD && change_at_next_upload) {
		change_at_next_upload = false;
		graph_change(&after);
	}
}

static void test_changed_while_it_is_made(void **state)
{
	CUgraph graph = graph_make();

	(void)state;
	graph_change(&before);
	subscriber_open(change_once);
	change_at_next_upload = true;
	CUgraphExec exec = instantiate_with(graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);

	graph_assert_ran(exec, NODES, &after);
	subscriber_close();
	end(exec, graph);
}

static void test_changed_while_it_is_launched(void **state)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	(void)state;
	graph_change(&before);
	subscriber_open(change_once);
	change_at_next_upload = true;
	graph_launch(exec);
	assert_false(change_at_next_upload);
	graph_assert_ran(exec, NODES, &after);
	subscriber_close();
	end(exec, graph);
}

/* --- several threads --------------------------------------------------------------------------------------------- */

#define ROUNDS 50

static CUDA_KERNEL_NODE_PARAMS shared_parameters; /* except for the arguments */

/* Makes, launches and destroys graphs with an output of this thread's own. Returns how many launches were in neither
 * set. */
static void *use_graphs(void *unused)
{
	CUdeviceptr output;
	uint64_t cycles = GPU_CYCLES;
	void *arguments[] = {&output, &cycles};
	uintptr_t strays = 0;
	CUstream stream;

	(void)unused;
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	output = gpu_new_output(&gpu);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		CUDA_KERNEL_NODE_PARAMS parameters = shared_parameters;
		CUgraphNode node;
		CUgraph graph;

		parameters.kernelParams = arguments;
		gpu_check(cuGraphCreate(&graph, 0));
		gpu_check(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
		CUgraphExec exec = graph_instantiate(graph);

		if (round % 2)
			gpu_check(cuGraphDestroyNode(node));
		gpu_check(cuGraphDestroy(graph));
		strays += graph_count_strays(exec, stream, output);
		gpu_check(cuGraphExecDestroy(exec));
	}
	gpu_check(cuMemFree_v2(output));
	gpu_check(cuStreamDestroy_v2(stream));
	return (void *)strays;
}

static void test_several_threads(void **state)
{
	(void)state;
	graph_change(&before);
	shared_parameters = graph_parameters(0);
	graph_use_while_it_changes(use_graphs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clusters_that_are_not_portable),
		cmocka_unit_test(test_updated_by_another_graph),
		cmocka_unit_test(test_updated_when_its_graph_is_gone),
		cmocka_unit_test(test_other_parameters),
		cmocka_unit_test(test_destroyed_node_is_counted),
		cmocka_unit_test(test_destroyed_child_graph_is_counted),
		cmocka_unit_test(test_node_added_later),
		cmocka_unit_test(test_child_of_a_child),
		cmocka_unit_test(test_device_updatable_node_is_left_alone),
		cmocka_unit_test(test_uploaded_as_it_is_made),
		cmocka_unit_test(test_uploaded_after_a_change),
		cmocka_unit_test(test_launched_by_kernels_is_counted),
		cmocka_unit_test(test_capture_in_another_stream),
		cmocka_unit_test(test_changed_while_it_is_made),
		cmocka_unit_test(test_changed_while_it_is_launched),
		cmocka_unit_test(test_several_threads),
	};

	return cmocka_run_group_tests_name("graphs_changed", tests, graph_set_up, NULL);
}
