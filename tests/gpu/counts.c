/*
 * Every kernel is counted when it is launched, and by the GPU when it has ended (facts.md, "Releases"): at rest both
 * numbers are equal, however it was launched.
 *
 * gpus: h200 turing blackwell
 */
#include "../cases.h"
#include "base/proc.h"
#include "state/kernels/counts_read.h"
#include "support/graph.h"
#include "support/green.h"
#include "support/subscriber.h"
#include "support/timed.h"

static struct counts_of_gpu at_begin;

static void begin(void)
{
	at_begin = gpu_kernels_at_rest(&gpu);
	if (at_begin.gaps & 1 << COUNTS_NO_SLOTS)
		gpu_skip("this GPU's launch descriptors have no slot that counts");
}

/* So many more were launched and announced, and all of them have ended. */
static void assert_ran(uint64_t kernels)
{
	struct counts_of_gpu counts = gpu_kernels_at_rest(&gpu);

	assert_each(counts.gaps, 0, counts.ended - at_begin.ended, kernels, counts.launched - at_begin.launched, kernels);
	assert_each(counts.unheard, at_begin.unheard, counts.in_flight, 0);
	at_begin = counts;
}

static bool is_area(int file)
{
	char link[64];

	return proc_read_link(link, sizeof link, "/proc/self/fd/%d", file) && strstr(link, "nvtaskset-counts");
}

static unsigned int count_areas(void)
{
	unsigned int found = 0;

	for (int file = 3; file < 1024; file++)
		found += is_area(file);
	return found;
}

/* --- in processes of their own: CUDA does not survive a fork ------------------------------------------------------- */

#define MANY_CONTEXTS (SEGMENT_AREAS * COUNTS_PLACES + 2)

static void use_another_context(void)
{
	struct gpu_under_test other;

	gpu_open(&other, 0);
	gpu_launch_empty(&other);
	gpu_close(&other);
	gpu_check(cuCtxSetCurrent(gpu.context));
}

/* A place is used again though it could not be registered, so that launches are counted for ever. */
TIMED_BY(timed_run_on_simulator, registration_is_refused_again_and_again)
{
	setenv("SIM_FAULTS", "no-register", 1);
	gpu_set_up(NULL);
	for (unsigned int i = 0; i < MANY_CONTEXTS; i++)
		use_another_context();
	struct counts_of_gpu counts = gpu_kernels(&gpu);

	assert_true(counts.gaps == 1 << COUNTS_REFUSED || counts.gaps == 1 << COUNTS_NO_SLOTS);
	assert_int_equal(counts.launched, MANY_CONTEXTS);
	assert_int_equal(count_areas(), 1);
}

/* While a context is being destroyed, another thread makes one: the driver refuses it the former one's memory. */
static void make_one_while_another_ends(int domain, int id, const uint64_t *words)
{
	static bool is_inside;
	CUcontext context;

	if (domain == RESOURCES && id == CONTEXT_DESTROY_STARTING && !is_inside) {
		is_inside = true;
		gpu_check(cuCtxCreate_v2(&context, 0, gpu.device));
		gpu_check(cuCtxDestroy_v2(context));
		is_inside = false;
	}
}

TIMED_BY(timed_run_on_simulator, contexts_made_while_others_end)
{
	gpu_set_up(NULL);
	subscriber_open(make_one_while_another_ends);
	subscriber_enable(RESOURCES, CONTEXT_DESTROY_STARTING);
	for (unsigned int i = 0; i < MANY_CONTEXTS; i++) {
		subscriber_forget();
		use_another_context();
	}
	subscriber_close();
	struct counts_of_gpu counts = gpu_kernels(&gpu);

	assert_int_equal(counts.launched, MANY_CONTEXTS);
	assert_true(counts.gaps == 0 || counts.gaps == 1 << COUNTS_NO_SLOTS);
	assert_int_equal(count_areas(), 1);
}

/* Its kernel writes to memory that is not there, and never ends. What the driver refuses afterwards was not launched. */
TEST_IN_CHILD(a_kernel_fails)
{
	uint64_t nowhere = 16, cycles = 0;
	void *arguments[] = {&nowhere, &cycles};

	gpu_set_up(NULL);
	timed_launch_into(NULL, 3, 0);
	struct counts_of_gpu before_it = gpu_kernels_at_rest(&gpu);

	cuLaunchKernel(gpu.where, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
	assert_int_not_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_not_equal(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
	struct counts_of_gpu counts = gpu_kernels(&gpu);

	assert_each(counts.launched - before_it.launched, 1, counts.ended, before_it.ended);
}

/* The program closes what it did not open, after it has made a context. Kernels go on counting where nobody sees it. */
TEST_IN_CHILD(the_file_is_closed)
{
	struct gpu_under_test first;

	gpu_set_up(NULL);
	first = gpu;
	timed_launch_into(NULL, 10, 0);
	gpu_kernels_at_rest(&gpu);
	for (int file = 3; file < 1024; file++) {
		if (is_area(file))
			close(file);
	}
	timed_launch_into(NULL, 10, 0);
	gpu_check(cuCtxSynchronize());
	assert_true(gpu_kernels(&gpu).gaps & 1 << COUNTS_CLOSED);
	gpu_open(&gpu, 0);
	timed_launch_into(NULL, 5, 0);
	struct counts_of_gpu counts = gpu_kernels_at_rest(&gpu);

	assert_true(counts.gaps & 1 << COUNTS_CLOSED);
	assert_int_equal(counts.launched, 5);
	assert_true(counts.ended == 5 || counts.gaps & 1 << COUNTS_NO_SLOTS);
	gpu_check(cuCtxSetCurrent(first.context));
	gpu_check(cuLaunchKernel(first.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	gpu_check(cuCtxSynchronize());
}

/* A graph that ran before, and that runs again. */
TEST_WITH(graph_set_up, NULL, a_refused_graph)
{
	if (!gpu_is_simulated())
		gpu_skip("only a simulated driver fails on request");
	CUgraphExec exec = graph_instantiate(graph_make());

	gpu_check(cuGraphLaunch(exec, NULL));
	begin();
	setenv("SIM_FAULTS", "no-launches", 1);
	assert_int_not_equal(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	assert_int_not_equal(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
	unsetenv("SIM_FAULTS");
	assert_ran(0);
}

/* --- launches --------------------------------------------------------------------------------------------------- */

/* The driver refuses it, and nothing runs. */
TEST_WITH(graph_set_up, NULL, refused_by_the_driver)
{
	begin();
	assert_int_not_equal(cuLaunchKernel(gpu.nothing, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
	assert_ran(0);
}

#define LAUNCHES 2000

static void *launch_in_a_stream(void *data)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	CUstream stream = gpu_new_stream();

	for (unsigned int i = 0; i < LAUNCHES; i++)
		gpu_check(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	gpu_check(cuStreamSynchronize(stream));
	gpu_check(cuStreamDestroy_v2(stream));
	return NULL;
}

static pthread_barrier_t all_have_launched;

static void *launch_together(void *data)
{
	launch_in_a_stream(NULL);
	pthread_barrier_wait(&all_have_launched);
	return launch_in_a_stream(data);
}

/* More than there are slots: the last ones share one. */
TEST(more_threads_than_slots)
{
	enum { MANY = COUNTER_SLOTS + 8 };

	begin();
	assert_int_equal(pthread_barrier_init(&all_have_launched, NULL, MANY), 0);
	threads_run(MANY, launch_together, NULL, 0);
	assert_ran(2 * MANY * LAUNCHES);
}

TEST_WITH(NULL, green_leave, green_context)
{
	green_enter();
	begin();
	for (unsigned int i = 0; i < 10; i++)
		gpu_launch_empty(&green.inside);
	assert_ran(10);
}

/* --- graphs ----------------------------------------------------------------------------------------------------- */

static void run(CUgraphExec exec, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++)
		gpu_check(cuGraphLaunch(exec, NULL));
}

/* Each launch has so many kernels. */
static void run_and_count(CUgraphExec exec, unsigned int times, unsigned int kernels)
{
	run(exec, times);
	assert_ran((uint64_t)times * kernels);
}

static CUgraphExec instantiate_uploaded(CUgraph graph)
{
	return graph_instantiate_with(graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
}

TEST(graph_that_is_uploaded_as_it_is_made)
{
	begin();
	CUgraph graph = graph_make();
	CUgraphExec exec = instantiate_uploaded(graph);

	assert_ran(0);
	run_and_count(exec, 5, NODES);
	gpu_set_partition(&gpu, after);
	gpu_check(cuGraphUpload(exec, NULL));
	assert_ran(0);
	run_and_count(exec, 5, NODES);
	graph_end(exec, graph);
}

static void update(CUgraphExec exec, CUgraph graph)
{
	CUgraphExecUpdateResultInfo info;

	gpu_check(cuGraphExecUpdate_v2(exec, graph, &info));
}

static CUgraph make_fill(CUdeviceptr memory, size_t bytes)
{
	const CUDA_MEMSET_NODE_PARAMS parameters = {.dst = memory, .elementSize = 1, .width = bytes, .height = 1};
	CUgraph graph = graph_make();
	CUgraphNode node;

	gpu_check(cuGraphAddMemsetNode(&node, graph, &nodes[NODES - 1], 1, &parameters, gpu.context));
	return graph;
}

/* One that is made small is no kernel, but becomes one while it is large; one that is made large stays a kernel. */
TEST(fills_that_change)
{
	enum { SMALL = 4096, LARGE = 1 << 20 };
	CUdeviceptr memory;

	begin();
	gpu_check(cuMemAlloc_v2(&memory, LARGE));
	CUgraph small = make_fill(memory, SMALL), large = make_fill(memory, LARGE);
	CUgraphExec made_small = graph_instantiate(small), made_large = graph_instantiate(large);

	run_and_count(made_small, 10, NODES);
	run_and_count(made_large, 10, NODES + 1);
	for (unsigned int i = 0; i < 2; i++) {
		update(made_small, large);
		update(made_large, small);
		run_and_count(made_small, 10, NODES + 1);
		run_and_count(made_large, 10, NODES + 1);
		update(made_small, small);
		update(made_large, large);
		run_and_count(made_small, 10, NODES);
		run_and_count(made_large, 10, NODES + 1);
	}
	graph_end(made_small, small);
	graph_end(made_large, large);
	gpu_check(cuMemFree_v2(memory));
}

/* It does not run, but becomes a node of the graph that is captured, and runs with that. */
TEST(graph_that_is_captured)
{
	CUgraph graph, outer = NULL;
	CUgraphExec exec, outer_exec;
	CUstream stream;

	begin();
	graph = graph_make();
	exec = graph_instantiate(graph);
	run_and_count(exec, 1, NODES);
	stream = gpu_new_stream();
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CUresult result = cuGraphLaunch(exec, stream);

	if (result == CUDA_SUCCESS)
		result = cuGraphLaunch(exec, stream);
	CUresult ended = cuStreamEndCapture(stream, &outer);

	assert_ran(0);
	if (result == CUDA_SUCCESS) {
		gpu_check(ended);
		outer_exec = graph_instantiate(outer);
		run_and_count(outer_exec, 10, 2 * NODES);
		run_and_count(exec, 10, NODES);
		graph_end(outer_exec, outer);
	}
	gpu_check(cuStreamDestroy_v2(stream));
	graph_end(exec, graph);
	if (result != CUDA_SUCCESS)
		gpu_skip("this driver does not capture launches of graphs");
}

/* How often a body runs only the GPU knows: it counts when it ends, and so does the graph's other kernel. */
static void count_conditional_body(CUgraphExec (*instantiate)(CUgraph graph))
{
	begin();
	if (!cuGraphConditionalHandleCreate || !cuGraphAddNode_v2)
		gpu_skip("this driver has no conditional nodes");
	const CUDA_KERNEL_NODE_PARAMS inside = graph_parameters(0);
	CUgraph graph = gpu_conditional_graph(&gpu, &inside);
	CUgraphExec exec = instantiate(graph);

	run(exec, 10);
	struct counts_of_gpu counts = gpu_kernels_at_rest(&gpu);

	assert_each(counts.gaps, 0, counts.launched - at_begin.launched, counts.unheard - at_begin.unheard);
	assert_int_equal(counts.ended - at_begin.ended, counts.unheard - at_begin.unheard);
	assert_true(counts.unheard - at_begin.unheard >= 10); /* and kernels of the driver's, on the hardware */
	assert_int_equal(counts.in_flight, 0);
	at_begin = counts;
	timed_launch_into(NULL, 5, 0);
	assert_ran(5);
	graph_end(exec, graph);
}

TEST(conditional_body)
{
	count_conditional_body(graph_instantiate);
	count_conditional_body(instantiate_uploaded);
}

/* --- contexts --------------------------------------------------------------------------------------------------- */

TEST(several_contexts)
{
	struct gpu_under_test others[3];

	begin();
	for (unsigned int i = 0; i < 3; i++)
		gpu_open(&others[i], 0);
	for (unsigned int round = 0; round < 10; round++) {
		for (unsigned int i = 0; i < 3; i++) {
			gpu_check(cuCtxSetCurrent(others[i].context));
			gpu_launch_empty(&others[i]);
		}
	}
	for (unsigned int i = 0; i < 3; i++) {
		gpu_check(cuCtxSetCurrent(others[i].context));
		gpu_check(cuCtxSynchronize());
	}
	assert_ran(30);
	for (unsigned int i = 0; i < 3; i++) {
		gpu_check(cuCtxSetCurrent(others[i].context));
		gpu_close(&others[i]);
	}
	gpu_check(cuCtxSetCurrent(gpu.context));
	timed_launch_into(NULL, 5, 0);
	assert_ran(5);
}

TEST(while_a_stream_is_captured)
{
	CUcontext context;
	CUstream stream;
	CUgraph graph;

	begin();
	stream = gpu_new_stream();
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	gpu_check(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	gpu_check(cuCtxCreate_v2(&context, 0, gpu.device));
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuStreamEndCapture(stream, &graph));
	assert_ran(0);
	gpu_check(cuGraphDestroy(graph));
	gpu_check(cuStreamDestroy_v2(stream));
	gpu_check(cuCtxSetCurrent(context));
	gpu_check(cuCtxDestroy_v2(context));
	gpu_check(cuCtxSetCurrent(gpu.context));
}

/* Its parent's context would count in its parent's memory. */
static void launch_in_the_parents_context(void)
{
	timed_launch_into(NULL, 10, 0);
	struct counts_of_gpu counts = gpu_kernels(&gpu);

	assert_each(counts.gaps, 1 << COUNTS_OLDER, counts.launched, 0);
}

TEST(child_in_its_parents_context)
{
	if (!gpu_is_simulated())
		gpu_skip("CUDA does not survive a fork");
	begin();
	timed_launch_into(NULL, 1, 0);
	child_passes(launch_in_the_parents_context);
	assert_ran(1);
}

RUN_TESTS_IN(gpu_load, NULL, NULL, NULL)
