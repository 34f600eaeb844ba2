/*
 * Graphs that change after they were made, or are made in unusual ways: they follow a changed partition, except for
 * nodes that we cannot reach, each of which is counted.
 *
 * gpus: h200 turing ada blackwell hopper-synthetic
 */
#include "../cases.h"
#include "support/graph.h"
#include "support/room.h"
#include "support/subscriber.h"

/* The largest virtual GPC from this one on that holds a cluster; empty if there is none. */
static struct tpcset room_for_cluster(unsigned int from, unsigned int blocks)
{
	struct tpcset group = {{0}};
	unsigned int number = from;

	while (number < gpu.topology->gpc_limit && tpcset_count(&group) * gpu.topology->sms_per_tpc < blocks)
		group = topology_virtual_gpc(gpu.topology, number++);
	return tpcset_count(&group) * gpu.topology->sms_per_tpc < blocks ? (struct tpcset){{0}} : group;
}

/* The driver returns an error for disabling such a node, but disables it. */
TEST(clusters_that_are_not_portable)
{
	enum { BLOCKS = 16 };
	const struct shape shape = {.blocks = 4 * BLOCKS, .threads = GPU_THREADS, .cluster = BLOCKS};
	uint64_t stale = gpu_counted(SEGMENT_STALE_GRAPH);
	struct tpcset first = room_for_cluster(0, BLOCKS), second, ran;
	CUgraph graph;

	if (gpu.topology->compute_major < 9 || tpcset_is_empty(&first))
		gpu_skip("this GPU has no room for such clusters");
	gpu_check(cuFuncSetAttribute(gpu.where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	second = room_for_cluster(gpu.topology->tpcs[tpcset_next(&first, 0)].virtual_gpc + 1u, BLOCKS);
	gpu_set_partition(&gpu, first);
	CUstream stream = gpu_new_stream();

	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpu_check(shape_launch(&gpu, &shape, stream, outputs[0]));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuStreamDestroy_v2(stream));
	CUgraphExec exec = graph_instantiate(graph);

	for (unsigned int i = 0; i < 4; i++) {
		const struct tpcset *set = i % 2 && !tpcset_is_empty(&second) ? &second : &first;

		gpu_set_partition(&gpu, *set);
		graph_launch(exec);
		ran = graph_ran(0);
		assert_false(tpcset_is_empty(&ran));
		assert_true(tpcset_is_subset(&ran, set));
	}
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), stale);
	graph_end(exec, graph);
	gpu_check(cuFuncSetAttribute(gpu.where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0));
}

TEST(destroyed_node_is_counted)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	graph_assert_follows(exec, NODES, before);
	gpu_check(cuGraphDestroyNode(nodes[2]));
	graph_launch_changed(exec, after, 2, 1);
	graph_assert_in(0, after);
	graph_assert_in(1, after);
	uint64_t stale = gpu_counted(SEGMENT_STALE_GRAPH);

	graph_launch(exec);
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), stale);
	graph_end(exec, graph);
}

/* Uploading it again would undo what kernels have changed in it. */
TEST(device_updatable_node_is_left_alone)
{
	CUlaunchAttributeValue updatable = {.deviceUpdatableKernelNode = {.deviceUpdatable = 1}};
	CUgraph graph = graph_make();

	if (cuGraphKernelNodeSetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &updatable) != CUDA_SUCCESS) {
		gpu_check(cuGraphDestroy(graph));
		gpu_skip("this driver has no nodes that kernels update");
	}
	gpu_set_partition(&gpu, before);
	CUgraphExec exec = graph_instantiate(graph);

	graph_assert_ran(exec, NODES, before);
	graph_launch_changed(exec, after, NODES - 1, 1);
	graph_end(exec, graph);
}

/* After cuGraphUpload the launch has nothing left to upload. */
TEST(uploaded_after_a_change)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	graph_assert_follows(exec, NODES, before);
	gpu_set_partition(&gpu, after);
	uint64_t refreshed = gpu_counters().refreshed + NODES;

	gpu_check(cuGraphUpload(exec, NULL));
	assert_int_equal(gpu_counters().refreshed, refreshed);
	graph_assert_ran(exec, NODES, after);
	assert_int_equal(gpu_counters().refreshed, refreshed);
	graph_end(exec, graph);
}

/* Launches by kernels are not announced. */
TEST(launched_by_kernels_is_counted)
{
	uint64_t stale = gpu_counted(SEGMENT_STALE_GRAPH);
	CUgraph graph = graph_make();
	CUgraphExec exec;

	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), stale + 1);
	graph_assert_follows(exec, NODES, before);
	graph_assert_follows(exec, NODES, after);
	graph_end(exec, graph);
}

static bool change_at_next_upload;

/* A subscriber's callback for an upload comes after the library's. */
static void change_once(int domain, int id, const uint64_t *words)
{
	if (domain == LAUNCHES && id == BEFORE_UPLOAD && change_at_next_upload) {
		change_at_next_upload = false;
		gpu_set_partition(&gpu, after);
	}
}

TEST(changed_while_it_is_made_or_launched)
{
	for (int is_launched = 0; is_launched < 2; is_launched++) {
		CUgraph graph = graph_make();

		ROW("%s", is_launched ? "launched" : "made");
		gpu_set_partition(&gpu, before);
		subscriber_open(change_once);
		change_at_next_upload = true;
		CUgraphExec exec = graph_instantiate_with(graph, is_launched ? 0 : CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);

		if (is_launched)
			graph_launch(exec);
		assert_false(change_at_next_upload);
		graph_assert_ran(exec, NODES, after);
		subscriber_close();
		graph_end(exec, graph);
	}
}

RUN_TESTS_IN(graph_set_up, NULL, NULL, NULL)
