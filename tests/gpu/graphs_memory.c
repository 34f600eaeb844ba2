/*
 * Fills and copies in graphs are uploaded again after a change, as they can be kernels (hardware.md); a kernel of
 * the driver's does not report where it runs. A copy from or to the host's memory is no kernel.
 *
 * gpus: h200 turing blackwell
 */
#include "../cases.h"
#include "support/graph.h"

#define BYTES ((size_t)1 << 20)

static unsigned char host[BYTES];
static CUdeviceptr device, second_device;

FIXTURE(allocate)
{
	graph_set_up(NULL);
	gpu_check(cuMemAlloc_v2(&device, BYTES));
	gpu_check(cuMemAlloc_v2(&second_device, BYTES));
}

static CUgraphNode add_copy(CUgraph graph, const CUDA_MEMCPY3D *parameters)
{
	CUgraphNode node;

	gpu_check(cuGraphAddMemcpyNode(&node, graph, NULL, 0, parameters, gpu.context));
	return node;
}

static CUDA_MEMCPY3D on_device(void)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = device, .srcPitch = BYTES,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = second_device, .dstPitch = BYTES, .WidthInBytes = BYTES,
		.Height = 1, .Depth = 1,
	};
}

static CUDA_MEMCPY3D with_host(bool is_from_host)
{
	CUDA_MEMCPY3D parameters = on_device();

	*(is_from_host ? &parameters.srcMemoryType : &parameters.dstMemoryType) = CU_MEMORYTYPE_HOST;
	*(is_from_host ? &parameters.srcDevice : &parameters.dstDevice) = 0;
	if (is_from_host)
		parameters.srcHost = host;
	else
		parameters.dstHost = host;
	return parameters;
}

static void assert_device_holds(CUdeviceptr address, unsigned char value)
{
	gpu_check(cuMemcpyDtoH_v2(host, address, BYTES));
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(host[i], value);
}

static void assert_uploaded_again(CUgraph graph, CUdeviceptr written, unsigned char value)
{
	CUgraphExec exec = graph_instantiate(graph);

	gpu_set_partition(&gpu, before);
	graph_replay(exec);
	assert_true(graph_launch_changed(exec, after, 1, 0) > 0);
	gpu_check(cuMemsetD8_v2(written, 0, BYTES));
	assert_true(graph_launch_changed(exec, before, 1, 0) > 0);
	assert_device_holds(written, value);
	graph_end(exec, graph);
}

TEST(fill)
{
	const CUDA_MEMSET_NODE_PARAMS parameters = {
		.dst = device, .value = 7, .elementSize = 1, .width = BYTES, .height = 1};
	CUgraphNode node;
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddMemsetNode(&node, graph, NULL, 0, &parameters, gpu.context));
	assert_uploaded_again(graph, device, 7);
}

/* With a kernel. */
TEST(copy_on_the_device)
{
	const CUDA_MEMCPY3D parameters = on_device();
	CUgraph graph;

	gpu_check(cuMemsetD8_v2(device, 5, BYTES));
	gpu_check(cuGraphCreate(&graph, 0));
	add_copy(graph, &parameters);
	assert_uploaded_again(graph, second_device, 5);
}

static void copy_with_the_host(const CUDA_MEMCPY3D *parameters, bool is_from_host)
{
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	add_copy(graph, parameters);
	CUgraphExec exec = graph_instantiate(graph);

	graph_replay(exec);
	for (unsigned char value = 1; value < 5; value++) {
		gpu_check(cuMemsetD8_v2(device, value, BYTES));
		memset(host, is_from_host ? value : 0, BYTES);
		graph_launch_changed(exec, value % 2 ? before : after, 1, 0);
		assert_int_equal(host[BYTES - 1], value);
		if (is_from_host)
			assert_device_holds(second_device, value);
	}
	graph_end(exec, graph);
}

TEST(copies_with_the_host)
{
	const CUDA_MEMCPY3D there = with_host(true), back = with_host(false);

	copy_with_the_host(&there, true);
	copy_with_the_host(&back, false);
}

/* The instance's copy of a destroyed node cannot be reached: it is counted if it can be a kernel. */
static void assert_counted_when_destroyed(const CUDA_MEMCPY3D *parameters, uint64_t count)
{
	uint64_t stale;
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	CUgraphNode node = add_copy(graph, parameters);
	CUgraphExec exec = graph_instantiate(graph);

	gpu_set_partition(&gpu, before);
	graph_replay(exec);
	gpu_check(cuGraphDestroyNode(node));
	stale = gpu_counted(SEGMENT_STALE_GRAPH);
	gpu_set_partition(&gpu, after);
	graph_replay(exec);
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), stale + count);
	graph_end(exec, graph);
}

TEST(destroyed_copy_counts_if_it_is_a_kernel)
{
	const CUDA_MEMCPY3D there = with_host(true), back = with_host(false), between = on_device();

	assert_counted_when_destroyed(&there, 0);
	assert_counted_when_destroyed(&back, 0);
	assert_counted_when_destroyed(&between, 1);
}

RUN_TESTS_IN(allocate, NULL, NULL, NULL)
