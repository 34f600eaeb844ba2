/*
 * A fork while other threads work on graphs: in the child, the locks that they held are free.
 *
 * Only on the simulator: with the real driver, the child may wait for the driver's own locks.
 */
#include "../cases.h"
#include "base/clock.h"
#include "support/child.h"
#include "support/graph.h"
#include "support/subscriber.h"

#define CALL_GRAPH_DESTROY 517

#define SECONDS 60 /* after which a child that waits is ended, and its test fails */

/* --- a call of another thread that is not finished ------------------------------------------------------------------ */

static atomic_bool inside; /* a tool's callback, which is called after our library's, or the handler of a signal */
static atomic_bool may_go;

static void stay_inside(int number)
{
	inside = true;
	while (!may_go)
		clock_pause_us(100);
}

static void stay(void *user, int domain, int id, const void *parameters)
{
	stay_inside(id);
}

/* --- the child ----------------------------------------------------------------------------------------------------- */

static CUgraph empty;

static void need_simulator(void)
{
	if (!gpu_is_simulated())
		gpu_skip("the driver does not survive a fork");
	gpu_check(cuGraphCreate(&empty, 0));
}

static void destroy_a_graph(void)
{
	alarm(SECONDS);
	may_go = true;
	gpu_check(cuGraphDestroy(empty));
}

/* Whether the child succeeded. */
static bool fork_and_destroy(void)
{
	struct child_end end = child_run(destroy_a_graph);

	return end.status == 0;
}

/* --- nodes that are uploaded again --------------------------------------------------------------------------------- */

/* No tool hears of these calls, which are ours: a signal comes in the middle of each. */
static void handle(void handler(int number))
{
	inside = may_go = false;
	signal(SIGUSR1, handler);
	setenv("SIM_FAULTS", "signals", 1);
}

static void handle_no_more(void)
{
	unsetenv("SIM_FAULTS");
	signal(SIGUSR1, SIG_DFL);
}

static CUgraphExec exec;

/* Makes a graph whose next launch must upload its nodes again. */
static void prepare_refresh(void)
{
	gpu_set_partition(&gpu, before);
	exec = graph_instantiate(graph_make());
	graph_assert_ran(exec, NODES, before);
	gpu_set_partition(&gpu, after);
}

static void check_refresh(void)
{
	graph_assert_ran(exec, NODES, after);
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), 0);
	gpu_check(cuGraphExecDestroy(exec));
}

static void *launch(void *argument)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuGraphLaunch(exec, NULL));
	return NULL;
}

TEST(while_another_thread_refreshes)
{
	need_simulator();
	prepare_refresh();
	handle(stay_inside);
	pthread_t other = thread_start(launch, NULL);

	while (!inside)
		clock_pause_us(100);
	bool passed = fork_and_destroy();

	may_go = true;
	pthread_join(other, NULL);
	handle_no_more();
	assert_true(passed);
	check_refresh();
}

static bool passed_inside;

static void fork_once(int number)
{
	if (!inside)
		passed_inside = fork_and_destroy();
	inside = true;
}

TEST(in_the_middle_of_refreshing)
{
	need_simulator();
	if (SANITIZED)
		gpu_skip("a sanitizer does not permit a fork in the handler of a signal");
	prepare_refresh();
	handle(fork_once);
	gpu_check(cuGraphLaunch(exec, NULL));
	handle_no_more();
	assert_true(passed_inside);
	check_refresh();
}

#define CONDITIONALS 20000 /* so many that forgetting them takes as long as some forks */

static void *destroy(void *graph)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuGraphDestroy(graph));
	return NULL;
}

/* How many forks came while the thread forgot bodies. */
static unsigned int fork_while_conditionals_go(void)
{
	unsigned int met = 0;
	bool passed = true;
	CUgraphNode node;
	CUgraph graph;
	uint32_t tool;

	gpu_check(cuGraphCreate(&graph, 0));
	for (int i = 0; i < CONDITIONALS; i++) {
		CUgraphNodeParams parameters = gpu_conditional_node(&gpu, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);

		gpu_check(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &parameters));
	}
	inside = may_go = false;
	gpu_check(tool_subscribe(&tool, stay, NULL));
	gpu_check(tool_enable(1, tool, API, CALL_GRAPH_DESTROY));
	pthread_t other = thread_start(destroy, graph);

	while (!inside && passed) {
		passed = fork_and_destroy();
		met += !inside;
	}
	may_go = true;
	pthread_join(other, NULL);
	gpu_check(tool_unsubscribe(tool));
	assert_true(passed);
	return met;
}

TEST(while_another_thread_forgets_bodies)
{
	unsigned int met = 0;

	need_simulator();
#ifdef __SANITIZE_ADDRESS__
	gpu_skip("this sanitizer's allocator does not survive a fork that comes while another thread uses it");
#endif
	/* The first forks may come before the thread begins. */
	while (met < 3)
		met += fork_while_conditionals_go();
}

RUN_TESTS_IN(graph_set_up, NULL, NULL, NULL)
