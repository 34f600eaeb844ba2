/*
 * nvtaskset --attach on this program, which was started without nvtaskset. Later launches of every thread and context
 * run in the partition. Graphs that were instantiated before do not, and are counted. BUILD is the build directory,
 * where the command is.
 */
#include "support/child.h"
#include "support/graph.h"
#include "support/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

/* --- launches ------------------------------------------------------------------------------------------------------ */

static void assert_runs_in(const struct tpcset *set)
{
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, set);
}

static void obey(void)
{
	struct tpcset all;

	graph_set_up(NULL);
	all = gpu_all(&gpu);
	assert_runs_in(&all);
	attach_to(&before);
	assert_runs_in(&before);
	assert_int_equal(attach("all"), 0);
	assert_runs_in(&all);
	gpu_set_partition(&gpu, &after);
	assert_runs_in(&after);
	assert_int_equal(gpu_counters().restricted, 2);
}

static void test_next_launch_obeys(void **state)
{
	(void)state;
	child_run_to_attach(obey);
}

/* --- counting ------------------------------------------------------------------------------------------------------ */

static void launch(unsigned int kernels)
{
	for (unsigned int i = 0; i < kernels; i++)
		gpu_launch_empty(&gpu);
	gpu_check(cuCtxSynchronize());
}

/* Waits until all that was launched has ended: the count may be seen later than the end. */
static void assert_counted(uint64_t launched)
{
	uint32_t gaps;
	struct counts_of_gpu kernels = gpu_kernels(&gpu, &gaps);

	while (gaps == 0 && kernels.ended < kernels.launched)
		kernels = gpu_kernels(&gpu, &gaps);
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
static void count_from_the_attach_on(void)
{
	uint32_t gaps;

	open_primary();
	CUgraph graph;
	CUgraphExec exec;
	const CUDA_KERNEL_NODE_PARAMS node = {gpu.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, NULL};
	CUgraphNode added;

	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddKernelNode_v2(&added, graph, NULL, 0, &node));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphLaunch(exec, NULL));
	launch(100);
	assert_int_equal(attach("all"), 0);
	launch(10);
	assert_counted(10);
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
	gpu_kernels(&gpu, &gaps);
	assert_true(gaps & 1 << COUNTS_OLDER);
}

static void test_kernels_are_counted_from_here_on(void **state)
{
	(void)state;
	child_run_to_attach(count_from_the_attach_on);
}

/* The context is not a primary one. The command goes by the one thread that there is. */
static void count_in_the_current_context(void)
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

static void test_kernels_of_the_current_context_are_counted(void **state)
{
	(void)state;
	child_run_to_attach(count_in_the_current_context);
}

/* The driver does not list contexts but the primary ones. */
static void say_what_is_not_counted(void)
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

static void test_older_contexts_are_said(void **state)
{
	(void)state;
	child_run_to_attach(say_what_is_not_counted);
}

#define THREADS 8

static atomic_bool ends;
static atomic_uint launched[THREADS];

static void *launch_all_the_time(void *argument)
{
	unsigned int number = (unsigned int)(uintptr_t)argument;
	CUdeviceptr output;

	gpu_check(cuCtxSetCurrent(gpu.context));
	output = gpu_new_output(&gpu);
	while (!ends) {
		struct tpcset ran = gpu_where_into(&gpu, NULL, output);

		assert_false(tpcset_is_empty(&ran));
		launched[number]++;
	}
	struct tpcset ran = gpu_where_into(&gpu, NULL, output);

	for (unsigned int tpc = 0; tpc < TPCSET_MAX; tpc++)
		assert_true(!tpcset_has(&ran, tpc) || tpcset_has(&before, tpc));
	return NULL;
}

static void wait_for_launches(void)
{
	for (unsigned int i = 0; i < THREADS; i++) {
		unsigned int seen = launched[i];

		while (launched[i] < seen + 3)
			usleep(1000);
	}
}

static void obey_from_all_threads(void)
{
	pthread_t threads[THREADS];

	graph_set_up(NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_all_the_time, (void *)i), 0);
	wait_for_launches();
	attach_to(&before);
	wait_for_launches();
	ends = true;
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(gpu_counters().restricted >= THREADS);
}

static void test_all_threads_obey(void **state)
{
	(void)state;
	child_run_to_attach(obey_from_all_threads);
}

/* --- graphs -------------------------------------------------------------------------------------------------------- */

static void count_older_graphs(void)
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

static void test_older_graphs_are_counted(void **state)
{
	(void)state;
	child_run_to_attach(count_older_graphs);
}

/* --- profilers ----------------------------------------------------------------------------------------------------- */

/* tool_first.c has more tests of this. */
static void wait_for_a_profiler(void)
{
	struct tpcset all;

	graph_set_up(NULL);
	all = gpu_all(&gpu);
	subscriber_open(NULL);
	/* The partition was changed and is not in force. */
	assert_int_equal(attach("0-3"), 3);
	assert_runs_in(&all);
	subscriber_close();
	assert_runs_in(&before);
}

static void test_profiler_first(void **state)
{
	(void)state;
	child_run_to_attach(wait_for_a_profiler);
}

static void share_with_a_profiler(void)
{
	graph_set_up(NULL);
	attach_to(&before);
	subscriber_open(NULL);
	assert_runs_in(&before);
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 1);
	subscriber_close();
	assert_runs_in(&before);
}

static void test_profiler_afterwards(void **state)
{
	(void)state;
	child_run_to_attach(share_with_a_profiler);
}

/* --- a quota ------------------------------------------------------------------------------------------------------- */

#define PATIENCE_SECONDS 20

/* With kernels of 1 to 2 ms. It was not put aside before, and has made its context itself. */
static void be_held_to_a_quota(void)
{
	uint64_t cycles = 3000000;
	void *parameters[] = {&gpu.output, &cycles};
	struct segment_time used = {.aside_us = 0};
	time_t end = time(NULL) + PATIENCE_SECONDS;
	uint32_t gaps;

	gpu_initialise();
	gpu_open(&gpu, 0);
	gpu_run(&gpu);
	assert_int_equal(attach_with("-p", "--quota=30%"), 0);
	gpu_run(&gpu);
	gpu_kernels(&gpu, &gaps);
	while (used.aside_us < 50000 && !(gaps & 1 << COUNTS_NO_SLOTS) && time(NULL) < end) {
		struct segment segment = gpu_own_segment();

		for (unsigned int i = 0; i < 5; i++)
			gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
		gpu_check(cuCtxSynchronize());
		segment_read_time(&segment, &used);
		segment_close(&segment);
	}
	if (!(gaps & 1 << COUNTS_NO_SLOTS)) {
		assert_string_equal(segment_time_text(used.state), segment_time_text(SEGMENT_TIME_IN_FORCE));
		assert_true(used.aside_us >= 50000);
	}
}

static void test_quota(void **state)
{
	(void)state;
	child_run_to_attach(be_held_to_a_quota);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_launch_obeys),
		cmocka_unit_test(test_kernels_are_counted_from_here_on),
		cmocka_unit_test(test_kernels_of_the_current_context_are_counted),
		cmocka_unit_test(test_older_contexts_are_said),
		cmocka_unit_test(test_all_threads_obey),
		cmocka_unit_test(test_older_graphs_are_counted),
		cmocka_unit_test(test_profiler_first),
		cmocka_unit_test(test_profiler_afterwards),
		cmocka_unit_test(test_quota),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
