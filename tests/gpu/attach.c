/*
 * nvtaskset --attach on this program, which was started without nvtaskset. Later launches run in the partition. Graphs
 * that were instantiated before do not, and are counted. BUILD is the build directory, where the command is.
 */
#include "../cases.h"
#include "state/kernels/counts_read.h"
#include "support/graph.h"
#include "support/timed.h"

#include <spawn.h>

extern char **environ;

/* Runs the command on this process, with two arguments before the pid; its exit status. */
static int attach_with(const char *option, const char *value)
{
	const char *build = getenv("BUILD");
	char command[512], pid[16], first[64], second[64];
	char *const arguments[] = {command, "--attach", first, second, pid, NULL};
	posix_spawn_file_actions_t quietly;
	int status = -1;
	pid_t child;

	/* For kernels that let only its parents trace a process. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	snprintf(command, sizeof command, "%s/nvtaskset", build ? build : "build");
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	snprintf(first, sizeof first, "%s", option);
	snprintf(second, sizeof second, "%s", value);
	posix_spawn_file_actions_init(&quietly);
	posix_spawn_file_actions_addopen(&quietly, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	assert_int_equal(posix_spawn(&child, command, &quietly, NULL, arguments, environ), 0);
	posix_spawn_file_actions_destroy(&quietly);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int attach(const char *set)
{
	return attach_with("-tp", set);
}

static void attach_to(const struct tpcset *set)
{
	char text[TPCSET_TEXT];

	assert_int_equal(attach(tpcset_format_list(set, text)), 0);
}

/* A case in a process of its own, to which it attaches. */
#define TEST_ATTACHED(name) TEST_BY(child_run_to_attach, name)

TEST_ATTACHED(next_launch_obeys)
{
	struct tpcset all;

	graph_set_up(NULL);
	all = gpu_all(&gpu);
	gpu_assert_inside(&all);
	attach_to(&before);
	gpu_assert_inside(&before);
	assert_int_equal(attach("all"), 0);
	gpu_assert_inside(&all);
	gpu_set_partition(&gpu, &after);
	gpu_assert_inside(&after);
	assert_int_equal(gpu_counters().restricted, 2);
}

/* --- counting ------------------------------------------------------------------------------------------------------ */

static void launch(unsigned int kernels)
{
	for (unsigned int i = 0; i < kernels; i++)
		gpu_launch_empty(&gpu);
	gpu_check(cuCtxSynchronize());
}

static void assert_counted(uint64_t launched)
{
	uint32_t gaps;
	struct counts_of_gpu kernels = gpu_kernels_at_rest(&gpu, &gaps);

	assert_int_equal(kernels.launched, launched);
	assert_true(gaps == 1 << COUNTS_NO_SLOTS || (gaps == 0 && kernels.ended == launched));
}

static void open_primary(void)
{
	CUcontext context;

	gpu_initialise();
	gpu_check(cuDevicePrimaryCtxRetain(&context, 0));
	gpu_check(cuCtxSetCurrent(context));
	gpu_open_current(&gpu, 0);
}

/* A graph that is older can be said, and not counted. */
TEST_ATTACHED(kernels_are_counted_from_here_on)
{
	uint32_t gaps;

	open_primary();
	outputs[0] = gpu.output;
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	graph_add_node(graph, 0, NULL);
	CUgraphExec exec = graph_instantiate(graph);

	gpu_check(cuGraphLaunch(exec, NULL));
	launch(100);
	assert_int_equal(attach("all"), 0);
	launch(10);
	assert_counted(10);
	graph_replay(exec);
	gpu_kernels(&gpu, &gaps);
	assert_true(gaps & 1 << COUNTS_OLDER);
}

/* The context is not a primary one. The command goes by the one thread that there is. */
TEST_ATTACHED(kernels_of_the_current_context_are_counted)
{
	struct gpu_under_test later;

	graph_set_up(NULL);
	launch(100);
	assert_int_equal(attach("all"), 0);
	launch(10);
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
	uint32_t gaps;

	graph_set_up(NULL);
	gpu_check(cuCtxSetCurrent(NULL));
	assert_int_equal(attach("all"), 0);
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_kernels(&gpu, &gaps);
	assert_int_equal(gaps, 0);
	launch(10);
	gpu_kernels(&gpu, &gaps);
	assert_int_equal(gaps, 1 << COUNTS_OLDER);
}

TEST_ATTACHED(older_graphs_are_counted)
{
	struct tpcset all;
	CUgraphExec older, newer;

	graph_set_up(NULL);
	all = gpu_all(&gpu);
	older = graph_instantiate(graph_make());
	graph_assert_ran(older, NODES, &all);
	attach_to(&before);
	graph_assert_ran(older, NODES, &all);
	graph_assert_ran(older, NODES, &all);
	assert_int_equal(graph_stale(), 2);
	newer = graph_instantiate(graph_make());
	graph_assert_ran(newer, NODES, &before);
	gpu_set_partition(&gpu, &after);
	graph_assert_ran(newer, NODES, &after);
	assert_int_equal(graph_stale(), 2);
	gpu_check(cuGraphExecDestroy(older));
}

/* It was not suspended before, and has made its context itself. */
TEST_ATTACHED(quota)
{
	uint32_t gaps;

	gpu_initialise();
	gpu_open(&gpu, 0);
	gpu_run(&gpu);
	assert_int_equal(attach_with("-p", "--quota=30%"), 0);
	gpu_run(&gpu);
	gpu_kernels(&gpu, &gaps);
	if (gaps & 1 << COUNTS_NO_SLOTS)
		return;
	timed_until (timed_look().aside_us >= 50000)
		timed_work(5);
	assert_string_equal(segment_time_text(timed_look().state), segment_time_text(SEGMENT_TIME_IN_FORCE));
}

RUN_TESTS(NULL, NULL)
