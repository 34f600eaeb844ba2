/*
 * The behaviour of the driver that the project relies on (facts.md, hardware.md), tested on the driver at
 * hand. This keeps the simulator right, and shows what changed in a new driver.
 *
 * Runs without nvtaskset, whose subscription would be in the way.
 *
 * gpus: h200 turing ada blackwell hopper-synthetic
 * runs: bare
 */
#include "../cases.h"
#include "gpu/qmd.h"
#include "support/graph.h"
#include "support/green.h"
#include "support/room.h"
#include "support/subscriber.h"

/* --- the table (facts.md, "The callback table") ------------------------------------------------------- */

/* The table is used before cuInit, as the shim uses it. */
TEST_WITH(no_fixture, NULL, table)
{
	void *const *table = subscriber_table();

	assert_true((uintptr_t)table[0] >= TABLE_ENTRIES * sizeof(void *));
	for (unsigned int entry = 1; entry < TABLE_ENTRIES; entry++)
		assert_non_null(table[entry]);
}

static void ignore(void *user, int domain, int id, const void *parameters)
{
}

TEST_WITH(no_fixture, NULL, there_is_one_slot)
{
	void *const *table = subscriber_table();
	uint32_t handle;

	subscriber_open(NULL);
	/* Not with the entry that takes a name: it has more arguments than we know, and would use them here. */
	CUresult second = ((table_subscribe *)table[TABLE_SUBSCRIBE])(&handle, ignore, NULL);

	subscriber_close();
	assert_int_equal(second, CUDA_ERROR_ALREADY_ACQUIRED);
}

/* --- launches (facts.md, "Callbacks" and "Launch descriptors") ------------------------------------------ */

static void open_gpu(subscriber_action *act)
{
	gpu_initialise();
	subscriber_open(act);
	gpu_open(&gpu, 0);
	subscriber_forget();
}

FIXTURE(close_gpu)
{
	gpu_close(&gpu);
	subscriber_close();
}

TEST_WITH(NULL, close_gpu, each_launch_is_announced_once_and_counted)
{
	open_gpu(NULL);
	gpu_run(&gpu);
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 1);
	assert_int_equal(subscriber_count(LAUNCHES, GRAPH_NODE_LAUNCH), 0);
	const struct event *launch = subscriber_last(LAUNCHES, BEFORE_UPLOAD);

	assert_int_equal((uint32_t)launch->words[0], 88);
	assert_ptr_equal(pointer(launch->words[1]), gpu.context);
	assert_ptr_equal(pointer(launch->words[3]), gpu.where);
	assert_int_equal(launch->words[4] % 4, 0);
	uint64_t number = launch->words[5];

	gpu_run(&gpu);
	assert_int_equal(subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[5], number + 1);
}

/* At the begin and at the end. */
TEST_WITH(NULL, close_gpu, calls_that_wait_are_announced)
{
	static const int calls[] = {17, 126, 121, 278}; /* of driver/calls.h */
	CUevent event;
	uint32_t word;

	open_gpu(NULL);
	for (unsigned int i = 0; i < COUNT_OF(calls); i++)
		subscriber_enable(API, calls[i]);
	gpu_check(cuEventCreate(&event, 0));
	gpu_check(cuEventRecord(event, NULL));
	gpu_check(cuCtxSynchronize());
	gpu_check(cuStreamSynchronize(NULL));
	gpu_check(cuEventSynchronize(event));
	gpu_check(cuMemcpyDtoH_v2(&word, gpu.output, sizeof word));
	gpu_check(cuEventDestroy_v2(event));
	for (unsigned int i = 0; i < COUNT_OF(calls); i++)
		assert_int_equal(subscriber_count(API, calls[i]), 2);
}

/* --- launch descriptors (facts.md, "Launch descriptors") ------------------------------------------------ */

static void need_hopper(void)
{
	if (gpu.topology->compute_major != 9)
		gpu_skip("the descriptor of this GPU was not measured");
}

/* In a 4.0 descriptor; and the bit of word 0 by which it takes effect. */
#define MASK_WORD (304 / 4)
#define MASK_COUNTS (UINT32_C(1) << 31)

/* Singletons have the bits from 72 on, and no room for four blocks. */
TEST_WITH(NULL, close_gpu, cluster_launch)
{
	uint32_t sms[8];

	open_gpu(NULL);
	need_hopper();
	gpu_where_clusters(&gpu, 4, 8, sms);
	const uint32_t *qmd = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd, *mask = &qmd[MASK_WORD];

	assert_int_equal(((const uint8_t *)qmd)[268], 4);
	assert_true(qmd[0] & MASK_COUNTS);
	assert_each(mask[0], 0, mask[1], 0, mask[2], 0xffffff00, mask[3], 0xffffffff);
}

/* Grids count clusters. A cooperative one is in a field of its own, and the usual one is 1. */
TEST_WITH(NULL, close_gpu, grids)
{
	static const struct {
		const char *name;
		struct shape shape;
		uint32_t grid, cooperative_grid; /* words of the descriptor */
	} rows[] = {
		{"plain", {.blocks = 24, .threads = GPU_THREADS}, 24, 0},
		{"cooperative", {.blocks = 24, .threads = GPU_THREADS, .is_cooperative = true}, 1, 1 << 16 | 24},
		{"clusters", {.blocks = 24, .threads = GPU_THREADS, .cluster = 4}, 6, 0},
		{"cooperative clusters", {.blocks = 24, .threads = GPU_THREADS, .cluster = 4, .is_cooperative = true},
		 1, 1 << 16 | 6},
	};

	open_gpu(NULL);
	need_hopper();
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		ROW("%s", rows[i].name);
		gpu_check(shape_launch(&gpu, &rows[i].shape, NULL, gpu.output));
		gpu_check(cuCtxSynchronize());
		const uint32_t *qmd = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd;

		assert_int_equal(qmd[128 / 4], rows[i].grid);
		if (rows[i].shape.is_cooperative)
			assert_int_equal(qmd[276 / 4], rows[i].cooperative_grid);
	}
}

/* --- green contexts (facts.md, "The callback table" and "Launch descriptors") --------------------------- */

FIXTURE(close_slot)
{
	subscriber_close();
}

static void need_green(void)
{
	gpu_initialise();
	if (!cuGreenCtxCreate) {
		subscriber_open(NULL);
		gpu_skip("this driver has no green contexts");
	}
}

TEST_WITH(NULL, close_slot, green_context_without_feature)
{
	CUgreenCtx made;

	need_green();
	subscriber_open(NULL);
	assert_int_equal(green_make(&made), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_WITH(NULL, close_slot, green_context_with_feature)
{
	struct gpu_under_test inside;
	CUcontext context;
	CUgreenCtx made;

	need_green();
	subscriber_open(NULL);
	gpu_check(subscriber_declare(7));
	gpu_check(green_make(&made));
	gpu_check(cuCtxFromGreenCtx(&context, made));
	gpu_check(cuCtxPushCurrent_v2(context));
	gpu_open_current(&inside, 0);
	gpu_run(&inside);
	const struct event *launch = subscriber_last(LAUNCHES, BEFORE_UPLOAD);

	/* Word [1] is some context of this GPU; not the green one, on an H200. */
	assert_int_not_equal(launch->words[1], 0);
	if (inside.topology->compute_major == 9) {
		assert_true(launch->qmd[0] & MASK_COUNTS);
		assert_int_not_equal(launch->qmd[MASK_WORD], 0);
	}
	gpu_close_current(&inside);
	gpu_check(cuCtxPopCurrent_v2(NULL));
	gpu_check(cuGreenCtxDestroy(made));
}

/* --- contexts and calls (hardware.md) ------------------------------------------------------------------- */

static void assert_announced_once(int id, CUcontext context)
{
	assert_int_equal(subscriber_count(RESOURCES, id), 1);
	assert_ptr_equal(pointer(subscriber_last(RESOURCES, id)->words[1]), context);
}

TEST_WITH(NULL, close_gpu, contexts_are_announced)
{
	CUcontext context;

	open_gpu(NULL);
	subscriber_enable(RESOURCES, CONTEXT_CREATED);
	subscriber_enable(RESOURCES, CONTEXT_DESTROY_STARTING);
	subscriber_enable(RESOURCES, CONTEXT_DESTROYED);
	gpu_check(cuCtxCreate_v2(&context, 0, gpu.device));
	assert_announced_once(CONTEXT_CREATED, context);
	assert_int_equal(subscriber_count(RESOURCES, CONTEXT_DESTROY_STARTING), 0);
	gpu_check(cuCtxDestroy_v2(context));
	assert_announced_once(CONTEXT_DESTROY_STARTING, context);
	assert_announced_once(CONTEXT_DESTROYED, context);
	gpu_check(cuCtxSetCurrent(gpu.context));
}

#define CALL_GRAPH_LAUNCH 514

/* What the callback saw as the call's result at entry and at exit. */
static CUresult result_at_entry, result_at_exit;
static void *first_argument, *second_argument;

static void look_at_call(int domain, int id, const uint64_t *words)
{
	void *const *arguments = pointer(words[7]);

	if (domain != API || id != CALL_GRAPH_LAUNCH)
		return;
	if (words[10] >> 32) {
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

/* --- graphs (facts.md, "CUDA graphs") -------------------------------------------------------------------- */

static CUgraph graph;
static CUgraphExec exec;

static void open_graph(subscriber_action *act)
{
	open_gpu(act);
	for (unsigned int i = 0; i < NODES; i++)
		outputs[i] = gpu.output;
	graph = graph_make();
	exec = graph_instantiate(graph);
}

static int close_graph(void **state)
{
	graph_end(exec, graph);
	return close_gpu(state);
}

/* The driver puts kernels of its own into a graph (hardware.md): these are not counted. */
static unsigned int count_nodes(int id)
{
	return subscriber_count_function(LAUNCHES, id, gpu.where);
}

/* Launches, and checks that at least so many kernel nodes are uploaded and launched. There may be more: with a node the
 * driver may upload the one before it again, and it may announce a disabled one. 0 uploads means exactly none. */
static void check_launch(unsigned int uploaded, unsigned int launched)
{
	subscriber_forget();
	graph_replay(exec);
	assert_true(count_nodes(BEFORE_UPLOAD) >= uploaded);
	assert_true(uploaded > 0 || count_nodes(BEFORE_UPLOAD) == 0);
	assert_true(count_nodes(GRAPH_NODE_LAUNCH) >= launched);
}

TEST(nodes_are_uploaded_once)
{
	open_graph(NULL);
	graph_replay(exec);
	assert_int_equal(count_nodes(BEFORE_UPLOAD), NODES);
	assert_int_equal(count_nodes(GRAPH_NODE_LAUNCH), NODES);
	const struct event *launch = subscriber_last(LAUNCHES, GRAPH_NODE_LAUNCH);

	assert_int_equal((uint32_t)launch->words[0], 168);
	assert_ptr_equal(pointer(launch->words[1]), gpu.context);
	assert_ptr_equal(pointer(launch->words[3]), gpu.where);
	check_launch(0, NODES);
	check_launch(0, NODES);
}

TEST(enabling_again_uploads)
{
	open_graph(NULL);
	graph_replay(exec);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	check_launch(1, NODES);
	check_launch(0, NODES);
}

/* In how many descriptors bank 5 is for the parameters of the next node, and valid or not any more: bits 436 to 439. */
static void assert_next(unsigned int valid, unsigned int invalid)
{
	unsigned int count[16] = {0};

	for (unsigned int i = 0; i < subscriber_count_all(); i++) {
		const struct event *event = subscriber_event(i);

		if (event->domain == LAUNCHES && event->id == BEFORE_UPLOAD)
			count[event->qmd[13] >> 20 & 15]++;
	}
	assert_each(count[5], valid, count[4], invalid);
}

/* The driver's own in front is one of them, and keeps it. */
TEST(parameters_are_fetched_ahead_until_a_node_is_disabled)
{
	open_graph(NULL);
	need_hopper();
	graph_replay(exec);
	assert_next(NODES, 0);
	for (unsigned int i = 0; i < NODES; i++) {
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[i], 0));
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[i], 1));
	}
	subscriber_forget();
	graph_replay(exec);
	assert_next(1, NODES - 1);
}

TEST(what_does_not_upload)
{
	CUgraphExecUpdateResultInfo info;

	open_graph(NULL);
	const CUDA_KERNEL_NODE_PARAMS same = graph_parameters(0);

	graph_replay(exec);
	gpu_check(cuGraphExecUpdate_v2(exec, graph, &info));
	check_launch(0, NODES);
	gpu_check(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &same));
	check_launch(0, NODES);
	gpu_check(cuGraphUpload(exec, NULL));
	check_launch(0, NODES);
}

/* From a graph with other parameters: the driver pairs its nodes with the instance's. The valid handles are still those of the
 * graph that was instantiated. */
TEST(handles_after_an_update)
{
	CUgraphExecUpdateResultInfo info;

	open_graph(NULL);
	graph_replay(exec);
	CUgraphNode first = nodes[1];

	outputs[1] = gpu_new_output(&gpu);
	CUgraph other = graph_make();

	gpu_check(cuGraphExecUpdate_v2(exec, other, &info));
	graph_replay(exec);
	assert_int_equal(cuGraphNodeSetEnabled(exec, nodes[1], 0), CUDA_ERROR_INVALID_VALUE);
	gpu_check(cuGraphNodeSetEnabled(exec, first, 0));
	gpu_check(cuGraphNodeSetEnabled(exec, first, 1));
	check_launch(1, NODES);
	gpu_check(cuGraphDestroy(other));
}

TEST(handles_of_a_destroyed_graph)
{
	open_graph(NULL);
	gpu_check(cuGraphDestroy(graph));
	graph = NULL;
	assert_int_equal(cuGraphNodeSetEnabled(exec, nodes[0], 0), CUDA_ERROR_INVALID_VALUE);
	check_launch(NODES, NODES);
}

static void assert_ran(struct tpcset set)
{
	gpu_assert_ran(gpu_read_tpcs(&gpu, gpu.output, GPU_BLOCKS(&gpu)), set);
}

static void narrow_host_copy(int domain, int id, const uint64_t *words)
{
	if (domain == LAUNCHES && id == GRAPH_NODE_LAUNCH)
		subscriber_narrow(LAUNCHES, BEFORE_UPLOAD, words);
}

TEST(host_copy_does_not_matter)
{
	open_graph(narrow_host_copy);
	subscriber_narrow_to(&gpu, gpu_range(0, 0));
	graph_replay(exec);
	graph_replay(exec);
	assert_ran(gpu_all(&gpu));
}

TEST(new_mask_holds_from_the_upload_on)
{
	open_graph(subscriber_narrow);
	subscriber_narrow_to(&gpu, gpu_all(&gpu));
	graph_replay(exec);
	subscriber_narrow_to(&gpu, gpu_range(0, 1));
	graph_replay(exec);
	assert_ran(gpu_all(&gpu));
	for (unsigned int i = 0; i < NODES; i++) {
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[i], 0));
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[i], 1));
	}
	graph_replay(exec);
	assert_ran(gpu_range(0, 1));
}

TEST(call_is_announced)
{
	open_graph(look_at_call);
	subscriber_enable(API, CALL_GRAPH_LAUNCH);
	graph_replay(exec);
	assert_int_equal(subscriber_count(API, CALL_GRAPH_LAUNCH), 2);
	assert_int_equal((uint32_t)subscriber_last(API, CALL_GRAPH_LAUNCH)->words[0], 104);
	assert_each(result_at_entry, 999, result_at_exit, CUDA_SUCCESS);
	assert_ptr_equal(first_argument, exec);
	assert_null(second_argument);
}

RUN_TESTS_IN(gpu_load, NULL, NULL, close_graph)
