/*
 * Every kernel is counted when it is launched, and by the GPU when it has ended (docs/facts.md, "Releases"): at rest both
 * numbers are equal, however it was launched.
 */
#include "state/counts.h"
#include "support/child.h"
#include "support/graph.h"
#include "support/green.h"
#include "support/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- reading ---------------------------------------------------------------------------------------------------- */

static struct counts_of_gpu at_begin;
static uint32_t gaps; /* of the last reading */

static struct counts_of_gpu now(void)
{
	return gpu_kernels(&gpu, &gaps);
}

/* Nothing says that a count is visible before a synchronisation ends, so this waits. */
#define PATIENCE_SECONDS 20

static struct counts_of_gpu at_rest(void)
{
	time_t end = time(NULL) + PATIENCE_SECONDS;

	gpu_check(cuCtxSynchronize());
	struct counts_of_gpu counts = now();

	while (counts.ended < counts.launched && !(gaps & 1 << COUNTS_NO_SLOTS) && time(NULL) < end) {
		sched_yield();
		counts = now();
	}
	return counts;
}

static void begin(void)
{
	at_begin = at_rest();
	if (gaps & 1 << COUNTS_NO_SLOTS)
		gpu_skip("this GPU's launch descriptors have no slot that counts");
}

/* So many more were launched, and all of them have ended; so many of them nobody announced. */
static void assert_ran(uint64_t kernels, uint64_t unheard)
{
	struct counts_of_gpu counts = at_rest();

	assert_int_equal(gaps, 0);
	assert_int_equal(counts.ended - at_begin.ended, kernels);
	assert_int_equal(counts.launched - at_begin.launched, kernels);
	assert_int_equal(counts.unheard - at_begin.unheard, unheard);
	assert_int_equal(counts.in_flight, 0);
	at_begin = counts;
}

static void launch(unsigned int kernels)
{
	for (unsigned int i = 0; i < kernels; i++)
		gpu_launch_empty(&gpu);
}

/* --- launches --------------------------------------------------------------------------------------------------- */

static void test_plain(void **state)
{
	(void)state;
	begin();
	launch(1000);
	assert_ran(1000, 0);
}

static void test_under_a_changing_partition(void **state)
{
	(void)state;
	begin();
	for (unsigned int i = 0; i < 20; i++) {
		graph_change(i % 2 ? &before : &after);
		launch(10);
	}
	assert_ran(200, 0);
	struct tpcset all = gpu_all(&gpu);

	graph_change(&all);
	launch(10);
	assert_ran(10, 0);
}

static void test_cooperative(void **state)
{
	(void)state;
	begin();
	for (unsigned int i = 0; i < 10; i++)
		gpu_check(gpu_launch_cooperative(&gpu, gpu.sm_count));
	assert_ran(10, 0);
}

static void test_clusters(void **state)
{
	uint32_t sms[8];

	(void)state;
	begin();
	if (gpu.topology->compute_major < 9)
		gpu_skip("this GPU has no clusters");
	for (unsigned int i = 0; i < 10; i++)
		gpu_where_clusters(&gpu, 4, 8, sms);
	assert_ran(10, 0);
}

/* The driver refuses it, and nothing runs. */
static void test_refused_by_the_driver(void **state)
{
	(void)state;
	begin();
	assert_int_not_equal(cuLaunchKernel(gpu.nothing, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
	assert_ran(0, 0);
}

#define THREADS 8
#define LAUNCHES 2000

static void *launch_in_a_stream(void *data)
{
	CUstream stream;

	(void)data;
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned int i = 0; i < LAUNCHES; i++)
		gpu_check(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	gpu_check(cuStreamSynchronize(stream));
	gpu_check(cuStreamDestroy_v2(stream));
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	begin();
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_in_a_stream, NULL), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_ran(THREADS * LAUNCHES, 0);
}

static pthread_barrier_t all_have_launched;

static void *launch_together(void *data)
{
	launch_in_a_stream(NULL);
	pthread_barrier_wait(&all_have_launched);
	return launch_in_a_stream(data);
}

/* More than there are slots: the last ones share one. */
static void test_more_threads_than_slots(void **state)
{
	enum { MANY = COUNTER_SLOTS + 8 };
	pthread_t threads[MANY];

	(void)state;
	begin();
	assert_int_equal(pthread_barrier_init(&all_have_launched, NULL, MANY), 0);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_together, NULL), 0);
	for (unsigned int i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	assert_ran(2 * MANY * LAUNCHES, 0);
}

static void test_green_context(void **state)
{
	(void)state;
	green_enter();
	begin();
	for (unsigned int i = 0; i < 10; i++)
		gpu_launch_empty(&green.inside);
	assert_ran(10, 0);
}

/* --- graphs ----------------------------------------------------------------------------------------------------- */

static void end(CUgraphExec exec, CUgraph graph)
{
	gpu_check(cuGraphExecDestroy(exec));
	gpu_check(cuGraphDestroy(graph));
}

static void run(CUgraphExec exec, unsigned int times)
{
	for (unsigned int i = 0; i < times; i++)
		gpu_check(cuGraphLaunch(exec, NULL));
}

/* The driver's own kernel in front is not the program's. */
static void test_graph(void **state)
{
	(void)state;
	begin();
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	assert_ran(0, 0);
	run(exec, 1);
	assert_ran(NODES, 0);
	run(exec, 100);
	launch(7);
	assert_ran(100 * NODES + 7, 0);
	end(exec, graph);
}

static void test_graph_that_is_uploaded_first(void **state)
{
	(void)state;
	begin();
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	gpu_check(cuGraphUpload(exec, NULL));
	assert_ran(0, 0);
	run(exec, 5);
	assert_ran(5 * NODES, 0);
	end(exec, graph);
}

static CUgraphExec instantiate_uploaded(CUgraph graph)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};
	CUgraphExec exec;

	gpu_check(cuGraphInstantiateWithParams(&exec, graph, &parameters));
	return exec;
}

static void test_graph_that_is_uploaded_as_it_is_made(void **state)
{
	(void)state;
	begin();
	CUgraph graph = graph_make();
	CUgraphExec exec = instantiate_uploaded(graph);

	assert_ran(0, 0);
	run(exec, 5);
	assert_ran(5 * NODES, 0);
	graph_change(&after);
	run(exec, 5);
	assert_ran(5 * NODES, 0);
	end(exec, graph);
}

static void test_graph_that_follows_changes(void **state)
{
	(void)state;
	begin();
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	for (unsigned int i = 0; i < 20; i++) {
		graph_change(i % 2 ? &before : &after);
		run(exec, 3);
	}
	assert_ran(20 * 3 * NODES, 0);
	end(exec, graph);
}

static void test_disabled_nodes(void **state)
{
	(void)state;
	begin();
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	run(exec, 1);
	assert_ran(NODES, 0);
	for (unsigned int i = 0; i < 3; i++) {
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
		run(exec, 10);
		assert_ran(10 * (NODES - 1), 0);
		graph_change(i % 2 ? &before : &after);
		run(exec, 10);
		assert_ran(10 * (NODES - 1), 0);
		gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 1));
		run(exec, 10);
		assert_ran(10 * NODES, 0);
	}
	end(exec, graph);
}

static void update(CUgraphExec exec, CUgraph graph)
{
	CUgraphExecUpdateResultInfo info;

	gpu_check(cuGraphExecUpdate_v2(exec, graph, &info));
}

static void test_updated_nodes(void **state)
{
	CUDA_KERNEL_NODE_PARAMS parameters = graph_parameters(1);

	(void)state;
	begin();
	CUgraph graph = graph_make();
	CUgraphNode original = nodes[1];
	CUgraph other = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	run(exec, 10);
	parameters.gridDimX = 3;
	gpu_check(cuGraphExecKernelNodeSetParams_v2(exec, original, &parameters));
	run(exec, 10);
	assert_ran(20 * NODES, 0);
	update(exec, other);
	run(exec, 10);
	assert_ran(10 * NODES, 0);
	end(exec, graph);
	gpu_check(cuGraphDestroy(other));
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
static void test_fills_that_change(void **state)
{
	enum { SMALL = 4096, LARGE = 1 << 20 };
	CUdeviceptr memory;

	(void)state;
	begin();
	gpu_check(cuMemAlloc_v2(&memory, LARGE));
	CUgraph small = make_fill(memory, SMALL), large = make_fill(memory, LARGE);
	CUgraphExec made_small = graph_instantiate(small), made_large = graph_instantiate(large);

	run(made_small, 10);
	assert_ran(10 * NODES, 0);
	run(made_large, 10);
	assert_ran(10 * (NODES + 1), 0);
	for (unsigned int i = 0; i < 2; i++) {
		update(made_small, large);
		update(made_large, small);
		run(made_small, 10);
		assert_ran(10 * (NODES + 1), 0);
		run(made_large, 10);
		assert_ran(10 * (NODES + 1), 0);
		update(made_small, small);
		update(made_large, large);
		run(made_small, 10);
		assert_ran(10 * NODES, 0);
		run(made_large, 10);
		assert_ran(10 * (NODES + 1), 0);
	}
	end(made_small, small);
	end(made_large, large);
	gpu_check(cuMemFree_v2(memory));
}

/* It does not run, but becomes a node of the graph that is captured, and runs with that. */
static void test_graph_that_is_captured(void **state)
{
	CUgraph graph, outer = NULL;
	CUgraphExec exec, outer_exec;
	CUstream stream;

	(void)state;
	begin();
	graph = graph_make();
	exec = graph_instantiate(graph);
	run(exec, 1);
	assert_ran(NODES, 0);
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CUresult result = cuGraphLaunch(exec, stream);

	if (result == CUDA_SUCCESS)
		result = cuGraphLaunch(exec, stream);
	CUresult ended = cuStreamEndCapture(stream, &outer);

	assert_ran(0, 0);
	if (result == CUDA_SUCCESS) {
		gpu_check(ended);
		outer_exec = graph_instantiate(outer);
		run(outer_exec, 10);
		assert_ran(10 * 2 * NODES, 0);
		run(exec, 10);
		assert_ran(10 * NODES, 0);
		gpu_check(cuGraphExecDestroy(outer_exec));
		gpu_check(cuGraphDestroy(outer));
	}
	gpu_check(cuStreamDestroy_v2(stream));
	end(exec, graph);
	if (result != CUDA_SUCCESS)
		gpu_skip("this driver does not capture launches of graphs");
}

/* How often a body runs only the GPU knows: it counts when it ends, and so does the graph's other kernel. */
static void count_conditional_body(CUgraphExec (*instantiate)(CUgraph graph))
{
	CUgraph graph;
	CUgraphExec exec;

	begin();
	if (!cuGraphConditionalHandleCreate || !cuGraphAddNode_v2)
		gpu_skip("this driver has no conditional nodes");
	gpu_check(cuGraphCreate(&graph, 0));
	CUgraphNodeParams parameters = gpu_conditional_node(&gpu, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);
	CUgraphNode conditional;

	gpu_check(cuGraphAddNode_v2(&conditional, graph, NULL, NULL, 0, &parameters));
	graph_add_node(*parameters.conditional.phGraph_out, 0, NULL);
	exec = instantiate(graph);
	run(exec, 10);
	struct counts_of_gpu counts = at_rest();

	assert_int_equal(gaps, 0);
	assert_int_equal(counts.launched - at_begin.launched, counts.unheard - at_begin.unheard);
	assert_int_equal(counts.ended - at_begin.ended, counts.unheard - at_begin.unheard);
	assert_true(counts.unheard - at_begin.unheard >= 10); /* and kernels of the driver's, on the hardware */
	assert_int_equal(counts.in_flight, 0);
	at_begin = counts;
	launch(5);
	assert_ran(5, 0);
	end(exec, graph);
}

static void test_conditional_body(void **state)
{
	(void)state;
	count_conditional_body(graph_instantiate);
	count_conditional_body(instantiate_uploaded);
}

static void test_fills_and_copies(void **state)
{
	enum { BYTES = 1 << 20 };
	CUdeviceptr memory;

	(void)state;
	begin();
	gpu_check(cuMemAlloc_v2(&memory, BYTES));
	for (unsigned int i = 0; i < 10; i++)
		gpu_check(cuMemsetD8_v2(memory, 1, BYTES));
	struct counts_of_gpu counts = at_rest();

	assert_int_equal(gaps, 0);
	assert_true(counts.launched - at_begin.launched <= 10); /* whether a fill is a kernel depends on the GPU */
	assert_int_equal(counts.ended, counts.launched);
	gpu_check(cuMemFree_v2(memory));
}

/* --- contexts --------------------------------------------------------------------------------------------------- */

static void test_several_contexts(void **state)
{
	struct gpu_under_test others[3];

	(void)state;
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
	assert_ran(30, 0);
	for (unsigned int i = 0; i < 3; i++) {
		gpu_check(cuCtxSetCurrent(others[i].context));
		gpu_close(&others[i]);
	}
	gpu_check(cuCtxSetCurrent(gpu.context));
	launch(5);
	assert_ran(5, 0);
}

static bool is_area(int file)
{
	char path[32], link[64] = "";

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	return readlink(path, link, sizeof link - 1) > 0 && strstr(link, "nvtaskset-counts");
}

static unsigned int count_areas(void)
{
	unsigned int found = 0;

	for (int file = 3; file < 1024; file++)
		found += is_area(file);
	return found;
}

/* More than an area has places: the page of a context that is destroyed serves the next one. */
static void test_one_context_after_the_other(void **state)
{
	(void)state;
	begin();
	unsigned int areas = count_areas();

	for (unsigned int i = 0; i < COUNTS_PLACES + 2; i++) {
		struct gpu_under_test other;

		gpu_open(&other, 0);
		gpu_launch_empty(&other);
		gpu_check(cuCtxSynchronize());
		gpu_close(&other);
		gpu_check(cuCtxSetCurrent(gpu.context));
		assert_ran(1, 0);
	}
	assert_int_equal(count_areas(), areas);
}

static void test_while_a_stream_is_captured(void **state)
{
	CUcontext context;
	CUstream stream;
	CUgraph graph;

	(void)state;
	begin();
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	gpu_check(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	gpu_check(cuCtxCreate_v2(&context, 0, gpu.device));
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuStreamEndCapture(stream, &graph));
	assert_ran(0, 0);
	gpu_check(cuGraphDestroy(graph));
	gpu_check(cuStreamDestroy_v2(stream));
	gpu_check(cuCtxSetCurrent(context));
	gpu_check(cuCtxDestroy_v2(context));
	gpu_check(cuCtxSetCurrent(gpu.context));
}

/* --- in processes of their own: CUDA does not survive a fork ------------------------------------------------------- */

static void open_in_child(void)
{
	gpu_initialise();
	gpu_open(&gpu, 0);
}

#define MANY_CONTEXTS (COUNTS_AREAS * COUNTS_PLACES + 2)

static void use_another_context(void)
{
	struct gpu_under_test other;

	gpu_open(&other, 0);
	gpu_launch_empty(&other);
	gpu_close(&other);
	gpu_check(cuCtxSetCurrent(gpu.context));
}

static void be_refused(void)
{
	setenv("SIM_FAULTS", "no-register", 1);
	open_in_child();
	launch(10);
	gpu_check(cuCtxSynchronize());
	struct counts_of_gpu counts = now();

	assert_true(gaps == 1 << COUNTS_REFUSED || gaps == 1 << COUNTS_NO_SLOTS);
	assert_int_equal(counts.launched, 10);
	assert_int_equal(counts.ended, 0);
	assert_int_equal(counts.in_flight, 10);
}

/* A place is used again though it could not be registered, so that launches are counted for ever. */
static void be_refused_again_and_again(void)
{
	setenv("SIM_FAULTS", "no-register", 1);
	open_in_child();
	for (unsigned int i = 0; i < MANY_CONTEXTS; i++)
		use_another_context();
	struct counts_of_gpu counts = now();

	assert_true(gaps == 1 << COUNTS_REFUSED || gaps == 1 << COUNTS_NO_SLOTS);
	assert_int_equal(counts.launched, MANY_CONTEXTS);
	assert_int_equal(count_areas(), 1);
}

static void test_registration_is_refused(void **state)
{
	(void)state;
	if (!gpu_is_simulated())
		gpu_skip("on the simulated driver only");
	struct child_end child = child_run(be_refused);

	child_assert_passed(&child);
	child = child_run(be_refused_again_and_again);
	child_assert_passed(&child);
}

/* While a context is being destroyed, another thread makes one: the driver refuses it the former one's memory. */
static void make_one_while_another_ends(int domain, int id, const uint64_t *words)
{
	static bool is_inside;
	CUcontext context;

	(void)words;
	if (domain == RESOURCES && id == CONTEXT_DESTROY_STARTING && !is_inside) {
		is_inside = true;
		gpu_check(cuCtxCreate_v2(&context, 0, gpu.device));
		gpu_check(cuCtxDestroy_v2(context));
		is_inside = false;
	}
}

static void make_while_others_end(void)
{
	open_in_child();
	subscriber_open(make_one_while_another_ends);
	subscriber_enable(RESOURCES, CONTEXT_DESTROY_STARTING);
	for (unsigned int i = 0; i < MANY_CONTEXTS; i++) {
		subscriber_forget();
		use_another_context();
	}
	subscriber_close();
	assert_int_equal(now().launched, MANY_CONTEXTS);
	assert_true(gaps == 0 || gaps == 1 << COUNTS_NO_SLOTS);
	assert_int_equal(count_areas(), 1);
}

static void test_contexts_made_while_others_end(void **state)
{
	(void)state;
	if (!gpu_is_simulated())
		gpu_skip("on the simulated driver only");
	struct child_end child = child_run(make_while_others_end);

	child_assert_passed(&child);
}

/* Its kernel writes to memory that is not there, and never ends. What the driver refuses afterwards was not launched. */
static void fail_in_child(void)
{
	uint64_t nowhere = 16, cycles = 0;
	void *arguments[] = {&nowhere, &cycles};

	open_in_child();
	launch(3);
	struct counts_of_gpu before_it = at_rest();

	cuLaunchKernel(gpu.where, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL);
	assert_int_not_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_not_equal(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
	struct counts_of_gpu counts = now();

	assert_int_equal(counts.launched - before_it.launched, 1);
	assert_int_equal(counts.ended, before_it.ended);
}

static void test_a_kernel_fails(void **state)
{
	(void)state;
	struct child_end child = child_run(fail_in_child);

	child_assert_passed(&child);
}

static void count_in_child(void)
{
	open_in_child();
	launch(10);
	struct counts_of_gpu counts = at_rest();

	assert_int_equal(counts.launched, 10);
	assert_true(counts.ended == 10 || gaps == 1 << COUNTS_NO_SLOTS);
}

static void test_child_of_a_fork(void **state)
{
	(void)state;
	struct child_end child = child_run(count_in_child);

	child_assert_passed(&child);
	child = child_run(count_in_child);
	child_assert_passed(&child);
}

/* The program closes what it did not open, after it has made a context. Kernels go on counting where nobody sees it. */
static void close_all_in_child(void)
{
	struct gpu_under_test first;

	open_in_child();
	first = gpu;
	launch(10);
	at_rest();
	for (int file = 3; file < 1024; file++) {
		if (is_area(file))
			close(file);
	}
	launch(10);
	gpu_check(cuCtxSynchronize());
	now();
	assert_true(gaps & 1 << COUNTS_CLOSED);
	gpu_open(&gpu, 0);
	launch(5);
	struct counts_of_gpu counts = at_rest();

	assert_true(gaps & 1 << COUNTS_CLOSED);
	assert_int_equal(counts.launched, 5);
	assert_true(counts.ended == 5 || gaps & 1 << COUNTS_NO_SLOTS);
	gpu_check(cuCtxSetCurrent(first.context));
	gpu_check(cuLaunchKernel(first.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	gpu_check(cuCtxSynchronize());
}

static void test_the_file_is_closed(void **state)
{
	(void)state;
	struct child_end child = child_run(close_all_in_child);

	child_assert_passed(&child);
}

/* Its parent's context would count in its parent's memory. */
static void launch_in_the_parents_context(void)
{
	launch(10);
	struct counts_of_gpu counts = now();

	assert_int_equal(gaps, 1 << COUNTS_OLDER);
	assert_int_equal(counts.launched, 0);
}

static void test_child_in_its_parents_context(void **state)
{
	(void)state;
	if (!gpu_is_simulated())
		gpu_skip("CUDA does not survive a fork");
	begin();
	launch(1);
	struct child_end child = child_run(launch_in_the_parents_context);

	child_assert_passed(&child);
	assert_ran(1, 0);
}

static int load(void **state)
{
	(void)state;
	gpu_load_driver();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registration_is_refused),
		cmocka_unit_test(test_contexts_made_while_others_end),
		cmocka_unit_test(test_a_kernel_fails),
		cmocka_unit_test(test_child_of_a_fork),
		cmocka_unit_test(test_the_file_is_closed),
		cmocka_unit_test_setup(test_plain, graph_set_up), /* from here on, this process uses CUDA */
		cmocka_unit_test(test_under_a_changing_partition),
		cmocka_unit_test(test_cooperative),
		cmocka_unit_test(test_clusters),
		cmocka_unit_test(test_refused_by_the_driver),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_more_threads_than_slots),
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_graph_that_is_uploaded_first),
		cmocka_unit_test(test_graph_that_is_uploaded_as_it_is_made),
		cmocka_unit_test(test_graph_that_follows_changes),
		cmocka_unit_test(test_disabled_nodes),
		cmocka_unit_test(test_updated_nodes),
		cmocka_unit_test(test_fills_that_change),
		cmocka_unit_test(test_graph_that_is_captured),
		cmocka_unit_test(test_conditional_body),
		cmocka_unit_test(test_fills_and_copies),
		cmocka_unit_test(test_several_contexts),
		cmocka_unit_test(test_one_context_after_the_other),
		cmocka_unit_test(test_while_a_stream_is_captured),
		cmocka_unit_test(test_child_in_its_parents_context),
		IN_GREEN(test_green_context),
	};

	return cmocka_run_group_tests_name("counts", tests, load, NULL);
}
