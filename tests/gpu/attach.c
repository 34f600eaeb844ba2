/*
 * nvtaskset --attach on this program, which was started without nvtaskset. Later launches run in the partition. Graphs
 * that were instantiated before do not, and are counted. BUILD is the build directory, where the command is.
 *
 * gpus: h200 turing blackwell
 * runs: bare
 */
#include "../cases.h"
#include "state/kernels/counts_read.h"
#include "support/graph.h"
#include "support/timed.h"

static void attach_to(struct tpcset set)
{
	char text[TPCSET_TEXT];

	assert_int_equal(gpu_nvtaskset(text_of("--attach -tp %s", tpcset_format_list(&set, text))), 0);
}

static void attach_to_all(void)
{
	assert_int_equal(gpu_nvtaskset("--attach -tp all"), 0);
}

/* A case in a process of its own, to which it attaches. */
#define TEST_ATTACHED(name) TEST_BY(child_run_to_attach, name)

/* --- counting ------------------------------------------------------------------------------------------------------ */

static void assert_counted(uint64_t launched)
{
	struct counts_of_gpu kernels = gpu_kernels_at_rest(&gpu);

	assert_int_equal(kernels.launched, launched);
	assert_true(kernels.gaps == 1 << COUNTS_NO_SLOTS || (kernels.gaps == 0 && kernels.ended == launched));
}

/* A graph that is older can be said, and not counted. */
TEST_ATTACHED(kernels_are_counted_from_here_on)
{
	CUcontext primary;
	CUgraph graph;

	gpu_initialise();
	gpu_check(cuDevicePrimaryCtxRetain(&primary, 0));
	gpu_check(cuCtxSetCurrent(primary));
	gpu_open_current(&gpu, 0);
	outputs[0] = gpu.output;
	gpu_check(cuGraphCreate(&graph, 0));
	graph_add_node(graph, 0, NULL);
	CUgraphExec exec = graph_instantiate(graph);

	gpu_check(cuGraphLaunch(exec, NULL));
	timed_work(100);
	attach_to_all();
	timed_work(10);
	assert_counted(10);
	graph_replay(exec);
	assert_true(gpu_kernels(&gpu).gaps & 1 << COUNTS_OLDER);
}

/* The context is not a primary one. The command goes by the one thread that there is. */
TEST_ATTACHED(kernels_of_the_current_context_are_counted)
{
	struct gpu_under_test later;

	graph_set_up(NULL);
	timed_work(100);
	attach_to_all();
	timed_work(10);
	assert_counted(10);
	gpu_open(&later, 0);
	gpu_launch_empty(&later);
	gpu_check(cuCtxSynchronize());
	gpu_check(cuCtxSetCurrent(gpu.context));
	assert_counted(11);
}

/* The driver does not list contexts but the primary ones. */
TEST_ATTACHED(older_contexts_are_said)
{
	graph_set_up(NULL);
	gpu_check(cuCtxSetCurrent(NULL));
	attach_to_all();
	gpu_check(cuCtxSetCurrent(gpu.context));
	assert_int_equal(gpu_kernels(&gpu).gaps, 0);
	timed_work(10);
	assert_int_equal(gpu_kernels(&gpu).gaps, 1 << COUNTS_OLDER);
}

TEST_ATTACHED(older_graphs_are_counted)
{
	struct tpcset all;
	CUgraphExec older, newer;

	graph_set_up(NULL);
	all = gpu_all(&gpu);
	older = graph_instantiate(graph_make());
	graph_assert_ran(older, NODES, all);
	attach_to(before);
	graph_assert_ran(older, NODES, all);
	graph_assert_ran(older, NODES, all);
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), 2);
	newer = graph_instantiate(graph_make());
	graph_assert_ran(newer, NODES, before);
	gpu_set_partition(&gpu, after);
	graph_assert_ran(newer, NODES, after);
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), 2);
	gpu_check(cuGraphExecDestroy(older));
}

/* It was not suspended before, and has made its context itself. */
TEST_ATTACHED(quota)
{
	gpu_set_up(NULL);
	gpu_run(&gpu);
	assert_int_equal(gpu_nvtaskset("--attach -p --quota=30%"), 0);
	gpu_run(&gpu);
	if (gpu_kernels(&gpu).gaps & 1 << COUNTS_NO_SLOTS)
		return;
	timed_until (timed_look().aside_us >= 50000)
		timed_work(5);
	assert_string_equal(segment_time_text(timed_look().state), segment_time_text(SEGMENT_TIME_IN_FORCE));
}

RUN_TESTS(NULL, NULL)
