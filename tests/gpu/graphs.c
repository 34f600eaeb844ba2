/* Instances of CUDA graphs: what their launches count, and that nothing of them is left when they are destroyed. */
/* gpus: h200 turing ada blackwell hopper-synthetic */
#include "../cases.h"
#include "support/graph.h"

#include <malloc.h>

/* The counters count what the man page says. */
TEST(replays_are_no_uploads)
{
	CUgraphExec exec = graph_instantiate(graph_make());

	graph_assert_follows(exec, NODES, before);
	uint64_t first = gpu_launches();

	for (int i = 0; i < 10; i++)
		graph_replay(exec);
	assert_int_equal(gpu_launches(), first);
	gpu_set_partition(&gpu, after);
	graph_replay(exec);
	assert_true(gpu_launches() >= first + NODES);
	gpu_check(cuGraphExecDestroy(exec));
}

/* The driver no longer lets a node fetch the parameters of the next one ahead if that is disabled, as we do. On hardware, only the time
 * of a launch tells (hardware.md, "Graphs"). */
TEST(parameters_are_fetched_ahead_as_before)
{
	CUgraphExec exec = graph_instantiate(graph_make());

	setenv("SIM_FAULTS", "slow-nodes", 1);
	for (int i = 0; i < 4; i++)
		graph_assert_follows(exec, NODES, i % 2 ? before : after);
	unsetenv("SIM_FAULTS");
	gpu_check(cuGraphExecDestroy(exec));
}

/* What the program changes stays as the driver has it. The simulator ends a program where it does not. */
TEST(parameters_of_changed_nodes_are_not_fetched_ahead)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	graph_assert_follows(exec, NODES, before);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	graph_replay(exec);
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	graph_assert_ran(exec, NODES, before);
	graph_end(exec, graph);
}

/* However many instances are made and destroyed, memory must not grow each time. The driver keeps some memory of its own: a
 * leaked graph each time would be more than a hundred bytes a time. The simulator keeps nothing. */
static bool memory_grows(void)
{
	size_t used = mallinfo2().uordblks;

	for (unsigned int i = 0; i < 200; i++) {
		CUgraph graph = graph_make();
		CUgraphExec exec = graph_instantiate(graph);

		gpu_check(cuGraphDestroy(graph));
		gpu_check(cuGraphLaunch(exec, NULL));
		gpu_set_partition(&gpu, i % 2 ? before : after);
		graph_replay(exec);
		gpu_check(cuGraphExecDestroy(exec));
	}
	return mallinfo2().uordblks > used + (gpu_is_simulated() ? 0 : 20000);
}

/* At first, and when somebody begins to look at this program, it grows once. */
TEST(memory_stays_flat)
{
	unsigned int rounds = 0;

	while (memory_grows())
		assert_true(++rounds < 4);
}

RUN_TESTS_IN(graph_set_up, NULL, NULL, NULL)
