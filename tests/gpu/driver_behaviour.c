/*
 * The behaviour of the driver that the project relies on (docs/facts.md, docs/hardware.md), tested on the driver at
 * hand. This keeps the simulator right, and shows what changed in a new driver.
 *
 * Runs without nvtaskset, whose subscription would be in the way.
 */
#include "gpu/qmd.h"
#include "support/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static struct gpu_under_test gpu;

/* --- the table (docs/facts.md, "The callback table") ------------------------------------------------------- */

/* The table is used before cuInit, as the shim uses it. */
static void test_table(void **state)
{
	void *const *table = subscriber_table();

	(void)state;
	assert_true((uintptr_t)table[0] >= TABLE_ENTRIES * sizeof(void *));
	for (unsigned int entry = 1; entry < TABLE_ENTRIES; entry++)
		assert_non_null(table[entry]);
}

static void ignore(void *user, int domain, int id, const void *parameters)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)parameters;
}

static void test_there_is_one_slot(void **state)
{
	void *const *table = subscriber_table();
	uint32_t handle;

	(void)state;
	subscriber_open(NULL);
	/* Not with the entry that takes a name: it has more arguments than we know, and would use them here. */
	CUresult second = ((table_subscribe *)table[TABLE_SUBSCRIBE])(&handle, ignore, NULL);

	subscriber_close();
	assert_int_equal(second, CUDA_ERROR_ALREADY_ACQUIRED);
}

static void test_slot_can_be_taken_again(void **state)
{
	(void)state;
	subscriber_open(NULL);
	subscriber_close();
	subscriber_open(NULL);
	subscriber_close();
}

static void test_features(void **state)
{
	(void)state;
	subscriber_open(NULL);
	for (int feature = 0; feature <= 10; feature++)
		assert_int_equal(subscriber_declare(feature), CUDA_SUCCESS);
	for (int feature = 11; feature < 32; feature++)
		assert_int_equal(subscriber_declare(feature), CUDA_ERROR_INVALID_VALUE);
	subscriber_close();
}

/* --- launches (docs/facts.md, "Callbacks" and "Launch descriptors") ------------------------------------------ */

static void open_gpu(subscriber_action *act)
{
	gpu_initialise();
	subscriber_open(act);
	gpu_open(&gpu, 0);
	subscriber_forget();
}

static int close_gpu(void **state)
{
	(void)state;
	gpu_close(&gpu);
	subscriber_close();
	return 0;
}

static void *pointer(uint64_t word)
{
	return (void *)(uintptr_t)word;
}

static void test_a_launch_is_announced_once(void **state)
{
	(void)state;
	open_gpu(NULL);
	gpu_run(&gpu);
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 1);
	assert_int_equal(subscriber_count(LAUNCHES, GRAPH_NODE_LAUNCH), 0);
	const struct event *launch = subscriber_last(LAUNCHES, BEFORE_UPLOAD);

	assert_int_equal((uint32_t)launch->words[0], 88);
	assert_ptr_equal(pointer(launch->words[1]), gpu.context);
	assert_ptr_equal(pointer(launch->words[3]), gpu.where);
	assert_int_equal(launch->words[4] % 4, 0);
}

static void test_memory_is_not_announced(void **state)
{
	uint32_t value = 0;

	(void)state;
	open_gpu(NULL);
	gpu_check(cuMemsetD32_v2(gpu.output, 1, 64));
	gpu_check(cuMemcpyDtoH_v2(&value, gpu.output, sizeof value));
	gpu_check(cuMemcpyHtoD_v2(gpu.output, &value, sizeof value));
	assert_int_equal(value, 1);
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 0);
}

static void test_streams_look_alike(void **state)
{
	CUstream stream;

	(void)state;
	open_gpu(NULL);
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_run(&gpu);
	uint64_t without = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[2];

	gpu_where(&gpu, stream);
	uint64_t with = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[2];

	gpu_check(cuStreamDestroy_v2(stream));
	assert_int_equal(with, without);
}

static void test_launches_are_counted(void **state)
{
	(void)state;
	open_gpu(NULL);
	gpu_run(&gpu);
	uint64_t before = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[5];

	gpu_run(&gpu);
	assert_int_equal(subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[5], before + 1);
}

static CUdevice device_seen_inside;

static void ask_for_device(int domain, int id, const uint64_t *words)
{
	(void)words;
	if (domain == LAUNCHES && id == BEFORE_UPLOAD)
		gpu_check(cuCtxGetDevice(&device_seen_inside));
}

static void test_driver_can_be_called_inside(void **state)
{
	(void)state;
	open_gpu(ask_for_device);
	device_seen_inside = -1;
	gpu_run(&gpu);
	assert_int_equal(device_seen_inside, gpu.device);
}

static void test_every_context_has_its_own_word(void **state)
{
	struct gpu_under_test other;

	(void)state;
	open_gpu(NULL);
	gpu_open(&other, 0);
	gpu_run(&other);
	assert_ptr_equal(pointer(subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[1]), other.context);
	gpu_close(&other);
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_run(&gpu);
	assert_ptr_equal(pointer(subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[1]), gpu.context);
}

/* --- launch descriptors (docs/facts.md, "Launch descriptors") ------------------------------------------------ */

static void test_version_is_known(void **state)
{
	static const struct qmd_mask nothing;

	(void)state;
	open_gpu(NULL);
	const struct qmd_family *family = qmd_family_for(gpu.topology->compute_major,
	                                                 gpu.topology->compute_minor);

	assert_non_null(family);
	gpu_run(&gpu);
	struct event launch = *subscriber_last(LAUNCHES, BEFORE_UPLOAD);

	assert_int_equal(qmd_disable(family, launch.qmd, &nothing, NULL), QMD_NARROWED);
}

static void test_narrowing_narrows(void **state)
{
	struct tpcset set = gpu_range(1, 3);

	(void)state;
	open_gpu(subscriber_narrow);
	subscriber_narrow_to(&gpu, &set);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &set);
}

static void need_hopper(void)
{
	if (gpu.topology->compute_major != 9)
		gpu_skip("the descriptor of this GPU was not measured");
}

/* Whether the mask of a 4.0 descriptor takes effect. */
static bool mask_counts(const uint32_t *qmd)
{
	return qmd[0] >> 31;
}

static const uint32_t *mask_of(const uint32_t *qmd)
{
	return qmd + 304 / 4;
}

static void test_plain_launch(void **state)
{
	(void)state;
	open_gpu(NULL);
	need_hopper();
	gpu_run(&gpu);
	const uint8_t *qmd = (const uint8_t *)subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd;

	assert_int_equal(qmd[72], 0x40);
	assert_int_equal(qmd[268], 0);
	assert_int_equal(qmd[269], 0);
	assert_int_equal(qmd[270], 0);
}

static void test_cooperative_launch(void **state)
{
	uint32_t grid;
	uint16_t cooperative_grid;

	(void)state;
	open_gpu(NULL);
	need_hopper();
	gpu_check(gpu_launch_cooperative(&gpu, 20));
	gpu_check(cuCtxSynchronize());
	const uint8_t *qmd = (const uint8_t *)subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd;

	memcpy(&grid, qmd + 128, sizeof grid);
	memcpy(&cooperative_grid, qmd + 276, sizeof cooperative_grid);
	assert_int_equal(grid, 1);
	assert_int_equal(cooperative_grid, 20);
}

/* Singletons have the bits from 72 on, and no room for four blocks. */
static void test_cluster_launch(void **state)
{
	uint32_t sms[8];

	(void)state;
	open_gpu(NULL);
	need_hopper();
	gpu_where_clusters(&gpu, 4, 8, sms);
	const uint32_t *qmd = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd;
	const uint32_t *mask = mask_of(qmd);

	assert_int_equal(((const uint8_t *)qmd)[268], 4);
	assert_true(mask_counts(qmd));
	assert_int_equal(mask[0], 0);
	assert_int_equal(mask[1], 0);
	assert_int_equal(mask[2], 0xffffff00);
	assert_int_equal(mask[3], 0xffffffff);
}

/* Both fields for a grid count clusters. */
static void test_grids_of_clusters(void **state)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};
	CUlaunchAttribute attributes[] = {
		{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 1, 1}},
		{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
	};
	CUlaunchConfig config = {.gridDimX = 24, .gridDimY = 1, .gridDimZ = 1, .blockDimX = GPU_THREADS, .blockDimY = 1,
	                         .blockDimZ = 1, .attrs = attributes, .numAttrs = 1};
	const uint32_t *qmd;

	(void)state;
	open_gpu(NULL);
	need_hopper();
	gpu_check(cuLaunchKernelEx(&config, gpu.where, parameters, NULL));
	gpu_check(cuCtxSynchronize());
	qmd = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd;
	assert_int_equal(qmd[128 / 4], 6);
	config.numAttrs = 2;
	gpu_check(cuLaunchKernelEx(&config, gpu.where, parameters, NULL));
	gpu_check(cuCtxSynchronize());
	qmd = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd;
	assert_int_equal(qmd[128 / 4], 1);
	assert_int_equal(qmd[276 / 4], 1 << 16 | 6);
}

/* --- green contexts (docs/facts.md, "The callback table" and "Launch descriptors") --------------------------- */

static CUresult make_green(CUgreenCtx *green, unsigned int sms)
{
	CUdevResource all, part, rest;
	CUdevResourceDesc description;
	unsigned int count = 1;
	CUdevice device;

	gpu_check(cuDeviceGet(&device, 0));
	gpu_check(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	gpu_check(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, sms));
	gpu_check(cuDevResourceGenerateDesc(&description, &part, 1));
	return cuGreenCtxCreate(green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
}

static int close_slot(void **state)
{
	(void)state;
	subscriber_close();
	return 0;
}

static void need_green(void)
{
	gpu_initialise();
	if (!cuGreenCtxCreate) {
		subscriber_open(NULL);
		gpu_skip("this driver has no green contexts");
	}
}

static void test_green_context_without_feature(void **state)
{
	CUgreenCtx green;

	(void)state;
	need_green();
	subscriber_open(NULL);
	assert_int_equal(make_green(&green, 16), CUDA_ERROR_NOT_SUPPORTED);
}

static void test_green_context_with_feature(void **state)
{
	struct gpu_under_test inside;
	CUcontext context;
	CUgreenCtx green;

	(void)state;
	need_green();
	subscriber_open(NULL);
	gpu_check(subscriber_declare(7));
	gpu_check(make_green(&green, 16));
	gpu_check(cuCtxFromGreenCtx(&context, green));
	gpu_check(cuCtxPushCurrent_v2(context));
	gpu_open_current(&inside, 0);
	gpu_run(&inside);
	const struct event *launch = subscriber_last(LAUNCHES, BEFORE_UPLOAD);

	/* Word [1] is some context of this GPU; not the green one, on an H200. */
	assert_int_not_equal(launch->words[1], 0);
	if (inside.topology->compute_major == 9) {
		assert_true(mask_counts(launch->qmd));
		assert_int_not_equal(mask_of(launch->qmd)[0], 0);
	}
	gpu_close_current(&inside);
	gpu_check(cuCtxPopCurrent_v2(NULL));
	gpu_check(cuGreenCtxDestroy(green));
}

/* --- contexts and calls (docs/hardware.md) ------------------------------------------------------------------- */

static void test_contexts_are_announced(void **state)
{
	CUcontext context;

	(void)state;
	open_gpu(NULL);
	subscriber_enable(RESOURCES, CONTEXT_CREATED);
	subscriber_enable(RESOURCES, CONTEXT_DESTROY_STARTING);
	subscriber_enable(RESOURCES, CONTEXT_DESTROYED);
	gpu_check(cuCtxCreate_v2(&context, 0, gpu.device));
	assert_int_equal(subscriber_count(RESOURCES, CONTEXT_CREATED), 1);
	assert_ptr_equal(pointer(subscriber_last(RESOURCES, CONTEXT_CREATED)->words[1]), context);
	assert_int_equal(subscriber_count(RESOURCES, CONTEXT_DESTROY_STARTING), 0);
	gpu_check(cuCtxDestroy_v2(context));
	assert_int_equal(subscriber_count(RESOURCES, CONTEXT_DESTROY_STARTING), 1);
	assert_ptr_equal(pointer(subscriber_last(RESOURCES, CONTEXT_DESTROY_STARTING)->words[1]), context);
	assert_int_equal(subscriber_count(RESOURCES, CONTEXT_DESTROYED), 1);
	assert_ptr_equal(pointer(subscriber_last(RESOURCES, CONTEXT_DESTROYED)->words[1]), context);
	gpu_check(cuCtxSetCurrent(gpu.context));
}

enum {
	CALL_GRAPH_LAUNCH = 514,
	CALL_GRAPH_DESTROY = 517
};

static bool is_exit(const uint64_t *words)
{
	return words[10] >> 32;
}

/* What the callback saw as the call's result at entry and at exit. */
static CUresult result_at_entry, result_at_exit;
static void *first_argument, *second_argument;

static void look_at_call(int domain, int id, const uint64_t *words)
{
	void *const *arguments = pointer(words[7]);

	if (domain != API || id != CALL_GRAPH_LAUNCH)
		return;
	if (is_exit(words)) {
		result_at_exit = *(CUresult *)pointer(words[5]);
	} else {
		result_at_entry = *(CUresult *)pointer(words[5]);
		first_argument = arguments[0];
		second_argument = arguments[1];
		assert_string_equal(pointer(words[6]), "cuGraphLaunch");
		assert_ptr_equal(pointer(words[8]), gpu.context);
		assert_int_equal((uint32_t)words[10], CALL_GRAPH_LAUNCH);
	}
}

/* --- graphs (docs/facts.md, "CUDA graphs") -------------------------------------------------------------------- */

#define NODES 3

static CUgraph graph;
static CUgraphNode nodes[NODES];
static CUgraphExec exec;

static uint64_t cycles = GPU_CYCLES;
static void *where_arguments[] = {&gpu.output, &cycles};

static void add_nodes(CUgraph to, CUgraphNode *added)
{
	const CUDA_KERNEL_NODE_PARAMS parameters = gpu_where_node(&gpu, where_arguments);

	for (unsigned int i = 0; i < NODES; i++)
		gpu_check(cuGraphAddKernelNode_v2(&added[i], to, i > 0 ? &added[i - 1] : NULL, i > 0,
		                                  &parameters));
}

static void open_graph(subscriber_action *act)
{
	open_gpu(act);
	gpu_check(cuGraphCreate(&graph, 0));
	add_nodes(graph, nodes);
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
}

static int close_graph(void **state)
{
	if (graph)
		gpu_check(cuGraphDestroy(graph));
	gpu_check(cuGraphExecDestroy(exec));
	return close_gpu(state);
}

static void launch_graph(void)
{
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
}

/* The driver puts kernels of its own into a graph (docs/hardware.md): these are not counted. */
static unsigned int count_nodes(int id)
{
	return subscriber_count_function(LAUNCHES, id, gpu.where);
}

/* Launches, and checks that at least so many kernel nodes are uploaded and launched. There may be more: with a node the
 * driver may upload the one before it again, and it may announce a disabled one. 0 uploads means exactly none. */
static void check_launch(unsigned int uploaded, unsigned int launched)
{
	subscriber_forget();
	launch_graph();
	assert_true(count_nodes(BEFORE_UPLOAD) >= uploaded);
	assert_true(uploaded > 0 || count_nodes(BEFORE_UPLOAD) == 0);
	assert_true(count_nodes(GRAPH_NODE_LAUNCH) >= launched);
}

static void test_nodes_are_uploaded_once(void **state)
{
	(void)state;
	open_graph(NULL);
	launch_graph();
	assert_int_equal(count_nodes(BEFORE_UPLOAD), NODES);
	assert_int_equal(count_nodes(GRAPH_NODE_LAUNCH), NODES);
	const struct event *launch = subscriber_last(LAUNCHES, GRAPH_NODE_LAUNCH);

	assert_int_equal((uint32_t)launch->words[0], 168);
	assert_ptr_equal(pointer(launch->words[1]), gpu.context);
	assert_ptr_equal(pointer(launch->words[3]), gpu.where);
	check_launch(0, NODES);
	check_launch(0, NODES);
}

static void test_enabling_again_uploads(void **state)
{
	(void)state;
	open_graph(NULL);
	launch_graph();
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	check_launch(1, NODES);
	check_launch(0, NODES);
}

static void test_disabled_node_is_not_launched(void **state)
{
	unsigned int enabled = 1;

	(void)state;
	open_graph(NULL);
	launch_graph();
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	gpu_check(cuGraphNodeGetEnabled(exec, nodes[1], &enabled));
	assert_int_equal(enabled, 0);
	check_launch(0, NODES - 1);
}

static bool renew_at_launch;

static void renew(int domain, int id, const uint64_t *words)
{
	if (domain == API && id == CALL_GRAPH_LAUNCH && !is_exit(words) && renew_at_launch) {
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[0], 0));
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[0], 1));
	}
}

static void test_enabling_again_from_inside_the_launch(void **state)
{
	(void)state;
	renew_at_launch = false;
	open_graph(renew);
	subscriber_enable(API, CALL_GRAPH_LAUNCH);
	launch_graph();
	renew_at_launch = true;
	check_launch(1, NODES);
}

static void test_what_does_not_upload(void **state)
{
	CUgraphExecUpdateResultInfo info;

	(void)state;
	open_graph(NULL);
	const CUDA_KERNEL_NODE_PARAMS same = gpu_where_node(&gpu, where_arguments);

	launch_graph();
	gpu_check(cuGraphExecUpdate_v2(exec, graph, &info));
	check_launch(0, NODES);
	gpu_check(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &same));
	check_launch(0, NODES);
	gpu_check(cuGraphUpload(exec, NULL));
	check_launch(0, NODES);
}

/* Another graph with other parameters; the driver pairs its nodes with the instance's. */
static CUgraph update_from_another(CUgraphNode *others)
{
	CUgraphExecUpdateResultInfo info;
	CUDA_KERNEL_NODE_PARAMS parameters = gpu_where_node(&gpu, where_arguments);
	CUgraph other;

	parameters.gridDimX -= 8;
	gpu_check(cuGraphCreate(&other, 0));
	for (unsigned int i = 0; i < NODES; i++)
		gpu_check(cuGraphAddKernelNode_v2(&others[i], other, i > 0 ? &others[i - 1] : NULL, i > 0, &parameters));
	gpu_check(cuGraphExecUpdate_v2(exec, other, &info));
	return other;
}

static void test_an_update_with_other_parameters_uploads(void **state)
{
	CUgraphNode others[NODES];

	(void)state;
	open_graph(NULL);
	launch_graph();
	gpu_check(cuGraphDestroy(update_from_another(others)));
	check_launch(NODES, NODES);
	check_launch(0, NODES);
}

/* The valid handles are still those of the graph that was instantiated. */
static void test_handles_after_an_update(void **state)
{
	CUgraphNode others[NODES];

	(void)state;
	open_graph(NULL);
	launch_graph();
	CUgraph other = update_from_another(others);

	launch_graph();
	assert_int_equal(cuGraphNodeSetEnabled(exec, others[1], 0), CUDA_ERROR_INVALID_VALUE);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	check_launch(1, NODES);
	gpu_check(cuGraphDestroy(other));
}

static void test_handles_of_a_clone(void **state)
{
	CUgraphNode of_clone;
	CUgraph clone;

	(void)state;
	open_graph(NULL);
	gpu_check(cuGraphClone(&clone, graph));
	gpu_check(cuGraphNodeFindInClone(&of_clone, nodes[0], clone));
	assert_int_equal(cuGraphNodeSetEnabled(exec, of_clone, 0), CUDA_ERROR_INVALID_VALUE);
	gpu_check(cuGraphDestroy(clone));
}

static void test_handles_of_a_destroyed_graph(void **state)
{
	(void)state;
	open_graph(NULL);
	gpu_check(cuGraphDestroy(graph));
	graph = NULL;
	assert_int_equal(cuGraphNodeSetEnabled(exec, nodes[0], 0), CUDA_ERROR_INVALID_VALUE);
	check_launch(NODES, NODES);
}

static struct tpcset tpcs_of_output(void)
{
	return gpu_read_tpcs(&gpu, gpu.output, GPU_BLOCKS(&gpu));
}

static void narrow_host_copy(int domain, int id, const uint64_t *words)
{
	if (domain == LAUNCHES && id == GRAPH_NODE_LAUNCH)
		subscriber_narrow(LAUNCHES, BEFORE_UPLOAD, words);
}

static void test_host_copy_does_not_matter(void **state)
{
	struct tpcset one = gpu_range(0, 0);

	(void)state;
	open_graph(narrow_host_copy);
	subscriber_narrow_to(&gpu, &one);
	launch_graph();
	launch_graph();
	struct tpcset all = gpu_all(&gpu), ran = tpcs_of_output();

	gpu_assert_equal(&ran, &all);
}

static void test_new_mask_holds_from_the_upload_on(void **state)
{
	(void)state;
	open_graph(subscriber_narrow);
	struct tpcset all = gpu_all(&gpu), few = gpu_range(0, 1);

	subscriber_narrow_to(&gpu, &all);
	launch_graph();
	subscriber_narrow_to(&gpu, &few);
	launch_graph();
	struct tpcset ran = tpcs_of_output();

	gpu_assert_equal(&ran, &all);
	for (unsigned int i = 0; i < NODES; i++) {
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[i], 0));
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[i], 1));
	}
	launch_graph();
	ran = tpcs_of_output();
	gpu_assert_equal(&ran, &few);
}

static void test_child_graph(void **state)
{
	CUgraphNode inner[NODES];
	CUgraph child;

	(void)state;
	open_gpu(NULL);
	gpu_check(cuGraphCreate(&child, 0));
	add_nodes(child, inner);
	graph = gpu_wrap_graph(child, NULL);
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check_launch(NODES, NODES);
	check_launch(0, NODES);
}

static void test_captured_graph(void **state)
{
	CUstream stream;

	(void)state;
	open_gpu(NULL);
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpu_check(cuLaunchKernel(gpu.where, gpu.sm_count, 1, 1, 32, 1, 1, 0, stream, where_arguments, NULL));
	gpu_check(cuStreamEndCapture(stream, &graph));
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 0);
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check_launch(1, 1);
	check_launch(0, 1);
	gpu_check(cuStreamDestroy_v2(stream));
}

/* Such a node runs a kernel of the driver's own. */
static void test_memset_node(void **state)
{
	CUDA_MEMSET_NODE_PARAMS parameters = {.elementSize = 1, .width = 1 << 20, .height = 1};
	CUgraphNode node;

	(void)state;
	open_gpu(NULL);
	gpu_check(cuMemAlloc_v2(&parameters.dst, parameters.width));
	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddMemsetNode(&node, graph, NULL, 0, &parameters, gpu.context));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	subscriber_forget();
	launch_graph();
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 1);
	gpu_check(cuGraphNodeSetEnabled(exec, node, 0));
	gpu_check(cuGraphNodeSetEnabled(exec, node, 1));
	subscriber_forget();
	launch_graph();
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 1);
	gpu_check(cuMemFree_v2(parameters.dst));
}

/* How many uploads the next launch leads to. */
static unsigned int uploads_of_launch(void)
{
	subscriber_forget();
	launch_graph();
	return subscriber_count(LAUNCHES, BEFORE_UPLOAD);
}

static void renew_node(CUgraphNode node)
{
	unsigned int enabled = 0;

	gpu_check(cuGraphNodeGetEnabled(exec, node, &enabled));
	assert_int_equal(enabled, 1);
	gpu_check(cuGraphNodeSetEnabled(exec, node, 0));
	gpu_check(cuGraphNodeSetEnabled(exec, node, 1));
}

/* It is no kernel; disabling and enabling it does no harm. */
static void test_small_memset_node(void **state)
{
	CUDA_MEMSET_NODE_PARAMS parameters = {.value = 3, .elementSize = 1, .width = 4096, .height = 1};
	unsigned char last = 0;
	CUgraphNode node;

	(void)state;
	open_gpu(NULL);
	gpu_check(cuMemAlloc_v2(&parameters.dst, parameters.width));
	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddMemsetNode(&node, graph, NULL, 0, &parameters, gpu.context));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_int_equal(uploads_of_launch(), 0);
	renew_node(node);
	assert_int_equal(uploads_of_launch(), 0);
	gpu_check(cuMemcpyDtoH_v2(&last, parameters.dst + parameters.width - 1, 1));
	assert_int_equal(last, 3);
	gpu_check(cuMemFree_v2(parameters.dst));
}

/* A copy on the device runs a kernel of the driver's own, too. */
static void check_copy_node(size_t width, size_t rows)
{
	CUDA_MEMCPY3D parameters = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcPitch = 2 * width,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstPitch = width,
		.WidthInBytes = width,
		.Height = rows,
		.Depth = 1,
	};
	CUgraphNode node;

	open_gpu(NULL);
	gpu_check(cuMemAlloc_v2(&parameters.srcDevice, 2 * width * rows));
	gpu_check(cuMemAlloc_v2(&parameters.dstDevice, width * rows));
	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &parameters, gpu.context));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_int_equal(uploads_of_launch(), 1);
	assert_int_equal(uploads_of_launch(), 0);
	renew_node(node);
	assert_int_equal(uploads_of_launch(), 1);
	gpu_check(cuMemFree_v2(parameters.srcDevice));
	gpu_check(cuMemFree_v2(parameters.dstDevice));
}

static void test_copy_node(void **state)
{
	(void)state;
	check_copy_node(1 << 20, 1);
}

static void test_copy_node_of_rows(void **state)
{
	(void)state;
	check_copy_node(64, 64);
}

/* The handles of the body's nodes reach its body. Its graph has one instance at a time. */
static void test_conditional_node(void **state)
{
	CUgraphNode node, inside;
	CUgraphExec second;

	(void)state;
	open_gpu(NULL);
	const CUDA_KERNEL_NODE_PARAMS kernel = gpu_where_node(&gpu, where_arguments);

	gpu_check(cuGraphCreate(&graph, 0));
	CUgraphNodeParams parameters = gpu_conditional_node(&gpu, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);

	gpu_check(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &parameters));
	gpu_check(cuGraphAddKernelNode_v2(&inside, parameters.conditional.phGraph_out[0], NULL, 0, &kernel));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	assert_int_equal(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	check_launch(1, 1);
	check_launch(0, 1);
	assert_int_equal(cuGraphNodeSetEnabled(exec, node, 0), CUDA_ERROR_INVALID_VALUE);
	renew_node(inside);
	check_launch(1, 1);
	check_launch(0, 1);
}

static void test_call_is_announced(void **state)
{
	(void)state;
	open_graph(look_at_call);
	subscriber_enable(API, CALL_GRAPH_LAUNCH);
	launch_graph();
	assert_int_equal(subscriber_count(API, CALL_GRAPH_LAUNCH), 2);
	assert_int_equal((uint32_t)subscriber_last(API, CALL_GRAPH_LAUNCH)->words[0], 104);
	assert_int_equal(result_at_entry, 999);
	assert_int_equal(result_at_exit, CUDA_SUCCESS);
	assert_ptr_equal(first_argument, exec);
	assert_null(second_argument);
}

static CUgraph spared, sacrificed;

static void destroy_another(int domain, int id, const uint64_t *words)
{
	CUgraph *argument = pointer(words[7]);

	if (domain == API && id == CALL_GRAPH_DESTROY && !is_exit(words) && *argument == spared)
		*argument = sacrificed;
}

static void test_arguments_can_be_replaced(void **state)
{
	(void)state;
	open_graph(destroy_another);
	subscriber_enable(API, CALL_GRAPH_DESTROY);
	gpu_check(cuGraphCreate(&sacrificed, 0));
	spared = graph;
	launch_graph();
	gpu_check(cuGraphDestroy(graph));
	spared = NULL;
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[2], 0));
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[2], 1));
	check_launch(1, NODES);
}

/* ---------------------------------------------------------------------------------------------------------------- */

static int load_driver(void **state)
{
	(void)state;
	gpu_load_driver();
	return 0;
}

#define ON_GPU(test) cmocka_unit_test_teardown(test, close_gpu)
#define WITH_SLOT(test) cmocka_unit_test_teardown(test, close_slot)
#define WITH_GRAPH(test) cmocka_unit_test_teardown(test, close_graph)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_there_is_one_slot),
		cmocka_unit_test(test_slot_can_be_taken_again),
		cmocka_unit_test(test_features),
		ON_GPU(test_a_launch_is_announced_once),
		ON_GPU(test_memory_is_not_announced),
		ON_GPU(test_streams_look_alike),
		ON_GPU(test_launches_are_counted),
		ON_GPU(test_driver_can_be_called_inside),
		ON_GPU(test_every_context_has_its_own_word),
		ON_GPU(test_version_is_known),
		ON_GPU(test_narrowing_narrows),
		ON_GPU(test_plain_launch),
		ON_GPU(test_cooperative_launch),
		ON_GPU(test_cluster_launch),
		ON_GPU(test_grids_of_clusters),
		WITH_SLOT(test_green_context_without_feature),
		WITH_SLOT(test_green_context_with_feature),
		ON_GPU(test_contexts_are_announced),
		WITH_GRAPH(test_nodes_are_uploaded_once),
		WITH_GRAPH(test_enabling_again_uploads),
		WITH_GRAPH(test_disabled_node_is_not_launched),
		WITH_GRAPH(test_enabling_again_from_inside_the_launch),
		WITH_GRAPH(test_what_does_not_upload),
		WITH_GRAPH(test_an_update_with_other_parameters_uploads),
		WITH_GRAPH(test_handles_after_an_update),
		WITH_GRAPH(test_handles_of_a_clone),
		WITH_GRAPH(test_handles_of_a_destroyed_graph),
		WITH_GRAPH(test_host_copy_does_not_matter),
		WITH_GRAPH(test_new_mask_holds_from_the_upload_on),
		WITH_GRAPH(test_child_graph),
		WITH_GRAPH(test_captured_graph),
		WITH_GRAPH(test_memset_node),
		WITH_GRAPH(test_small_memset_node),
		WITH_GRAPH(test_copy_node),
		WITH_GRAPH(test_copy_node_of_rows),
		WITH_GRAPH(test_conditional_node),
		WITH_GRAPH(test_call_is_announced),
		WITH_GRAPH(test_arguments_can_be_replaced),
	};

	return cmocka_run_group_tests_name("driver_behaviour", tests, load_driver, NULL);
}
