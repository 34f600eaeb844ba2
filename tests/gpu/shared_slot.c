/*
 * The driver has one subscriber slot, and we have it. Profilers work nevertheless, and whatever they enable, disable or
 * leave enabled, the partition stays in force (facts.md, "The callback table").
 *
 * gpus: h200 blackwell
 */
#include "../cases.h"
#include "base/clock.h"
#include "support/child.h"
#include "support/graph.h"
#include "support/green.h"
#include "support/subscriber.h"

static struct tpcset set;

/* Only counts: with everything enabled, more is announced than a test remembers. */
static struct {
	uint32_t handle;
	unsigned int launches;
	unsigned int others;
} counter;

static void count(void *user, int domain, int id, const void *parameters)
{
	assert_ptr_equal(user, &counter);
	if (domain == LAUNCHES && id == BEFORE_UPLOAD)
		counter.launches++;
	else
		counter.others++;
}

static CUresult subscribe_counter(uint32_t *handle)
{
	return tool_subscribe_with_name(handle, count, &counter, "test");
}

static void unsubscribe_counter(void)
{
	gpu_check(tool_unsubscribe(counter.handle));
}

static CUresult enable_launches(bool on)
{
	return tool_enable(on, counter.handle, LAUNCHES, BEFORE_UPLOAD);
}

static CUresult enable_one_domain(bool on, int domain)
{
	return tool_enable_domain(on, counter.handle, domain);
}

static CUresult enable_domain(bool on)
{
	return enable_one_domain(on, LAUNCHES);
}

static CUresult enable_all(bool on)
{
	return tool_enable_all(on, counter.handle);
}

TEST(profiler_sees_the_final_descriptor)
{
	subscriber_open(NULL);
	gpu_assert_inside(set);
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 1);
	assert_ptr_equal((void *)(uintptr_t)subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[1], gpu.context);
	subscriber_close();
}

/* The original libsmctrl, linked into a program, is a subscriber. */
TEST(a_tool_cannot_leave_the_partition)
{
	struct tpcset both = gpu_range(2, 9), inside = gpu_range(2, 3);
	uint64_t counted = gpu_counted(SEGMENT_OWN_MASK);

	gpu_set_partition(&gpu, gpu_range(0, 3));
	subscriber_open(subscriber_narrow);
	subscriber_narrow_to(&gpu, both);
	gpu_assert_runs_in(&gpu, NULL, inside);
	assert_int_equal(gpu_counted(SEGMENT_OWN_MASK), counted);
	subscriber_narrow_to(&gpu, gpu_range(20, 29));
	gpu_assert_runs_in(&gpu, NULL, gpu_range(0, 3));
	assert_int_equal(gpu_counted(SEGMENT_OWN_MASK), counted + 1);
	subscriber_narrow_to(&gpu, gpu_range(1, 1));
	gpu_assert_runs_in(&gpu, NULL, gpu_range(1, 1));
	assert_int_equal(gpu_counted(SEGMENT_OWN_MASK), counted + 1);
	subscriber_close();
	gpu_set_partition(&gpu, set);
}

/* The cluster has room in the partition, and no room where both masks overlap. */
TEST(a_cluster_between_two_masks_ends)
{
	struct tpcset part = gpu_some_of_gpc(0, 4), two = gpu_some_of_gpc(0, 2), other = gpu_some_of_gpc(1, 4);
	uint32_t sms[64];

	gpu_need_clusters();
	gpu_set_partition(&gpu, part);
	subscriber_open(subscriber_narrow);
	subscriber_narrow_to(&gpu, tpcset_or(&two, &other));
	struct tpcset ran = gpu_where_clusters(&gpu, 8, COUNT_OF(sms), sms);

	assert_true(tpcset_is_subset(&ran, &part));
	subscriber_close();
	gpu_set_partition(&gpu, set);
}

/* --- calls in a tool's callback ----------------------------------------------------------------------------------- */

#define CALL_GRAPH_LAUNCH 514

static CUgraphExec inner;

/* At the begin of cuGraphLaunch, a tool launches `inner`, or else a kernel. */
static void launch_inside(void *user, int domain, int id, const void *parameters)
{
	static bool is_inside;
	bool is_end = ((const uint64_t *)parameters)[10] >> 32 != 0;

	if (domain != API || id != CALL_GRAPH_LAUNCH || is_end || is_inside)
		return;
	is_inside = true;
	if (inner)
		gpu_check(cuGraphLaunch(inner, NULL));
	else
		gpu_launch_empty(&gpu);
	is_inside = false;
}

static void launch_with_tool(CUgraphExec exec)
{
	gpu_check(tool_subscribe(&counter.handle, launch_inside, NULL));
	gpu_check(enable_one_domain(true, API));
	graph_replay(exec);
	unsubscribe_counter();
}

TEST(a_kernel_of_a_tool_is_no_node)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	inner = NULL;
	launch_with_tool(exec);
	graph_replay(exec);
	struct counts_of_gpu kernels = gpu_kernels_at_rest(&gpu);

	assert_each(kernels.in_flight, 0, kernels.launched, kernels.ended);
	graph_end(exec, graph);
}

TEST(a_graph_of_a_tool_leaves_the_programs_graph_alone)
{
	CUgraph tools = graph_make(), graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	inner = graph_instantiate(tools);

	gpu_set_partition(&gpu, gpu_range(0, 5));
	launch_with_tool(exec);
	graph_assert_follows(exec, NODES, gpu_range(4, 9));
	graph_assert_follows(exec, NODES, gpu_range(10, 13));
	graph_end(inner, tools);
	graph_end(exec, graph);
	inner = NULL;
	gpu_set_partition(&gpu, set);
}

/* CUPTI's samples do it in this order: subscribe, one event or a domain, work, all off, unsubscribe. */
TEST(each_tool_after_the_other)
{
	static CUresult (*const ways[])(bool on) = {enable_launches, enable_domain, enable_all};

	for (unsigned int first = 0; first < 3; first++) {
		for (unsigned int second = 0; second < 3; second++) {
			gpu_check(subscribe_counter(&counter.handle));
			counter.launches = 0;
			gpu_check(ways[first](true));
			gpu_check(ways[second](true));
			gpu_assert_inside(set);
			assert_int_equal(counter.launches, 1);
			gpu_check(ways[first](false));
			gpu_assert_inside(set);
			assert_int_equal(counter.launches, 1);
			unsubscribe_counter();
			/* Events that the previous tool enabled are not enabled for the next. */
			subscriber_open(NULL);
			gpu_assert_inside(set);
			assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 1);
			assert_int_equal(subscriber_count_all(), 1);
			subscriber_close();
			gpu_assert_inside(set);
		}
	}
}

TEST(both_ways_to_subscribe_are_one_slot)
{
	uint32_t second;

	subscriber_open(NULL);
	assert_int_equal(subscribe_counter(&second), CUDA_ERROR_ALREADY_ACQUIRED);
	subscriber_close();
	gpu_check(subscribe_counter(&counter.handle));
	assert_int_equal(tool_subscribe(&second, count, &counter), CUDA_ERROR_ALREADY_ACQUIRED);
	unsubscribe_counter();
	gpu_assert_inside(set);
}

/* We need events of these domains, too: a tool that disables them must not disable them for us. */
TEST(graphs_follow_without_the_domains)
{
	CUgraph graph;
	CUgraphExec exec;

	gpu_check(subscribe_counter(&counter.handle));
	gpu_check(enable_one_domain(true, API));
	gpu_check(enable_one_domain(true, RESOURCES));
	graph = graph_make();
	exec = graph_instantiate(graph);
	graph_assert_ran(exec, NODES, set);
	gpu_check(enable_one_domain(false, API));
	gpu_check(enable_one_domain(false, RESOURCES));
	graph_assert_follows(exec, NODES, after);
	unsubscribe_counter();
	graph_assert_follows(exec, NODES, set);
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), 0);
	graph_end(exec, graph);
}

static CUresult declare(bool on, int feature)
{
	return tool_declare_feature(on, counter.handle, feature);
}

#define FEATURE_GREEN_CONTEXTS 7
#define NO_SUCH_FEATURE 1000

#define TOOLS_FEATURE 0

static bool is_declared(int feature)
{
	uint32_t on = 2;

	gpu_check(tool_query_feature(&on, counter.handle, feature));
	return on == 1;
}

/* Nsight Compute does not declare it, and waits for ever if we have declared it (hardware.md). */
TEST(the_first_feature_is_the_tools)
{
	if (!gpu_is_simulated())
		gpu_skip("what the driver answers to who asks for a feature is not known");
	gpu_check(subscribe_counter(&counter.handle));
	assert_false(is_declared(TOOLS_FEATURE));
	gpu_check(declare(true, TOOLS_FEATURE));
	assert_true(is_declared(TOOLS_FEATURE));
	gpu_check(declare(false, TOOLS_FEATURE));
	assert_false(is_declared(TOOLS_FEATURE));
	assert_true(is_declared(FEATURE_GREEN_CONTEXTS));
	unsubscribe_counter();
	assert_true(is_declared(TOOLS_FEATURE));
}

/* Without its feature the driver has no green contexts (facts.md, "The callback table"): they outlast the tool
 * that takes it back. */
TEST(features_stay_declared)
{
	CUgreenCtx made;

	gpu_check(subscribe_counter(&counter.handle));
	gpu_check(declare(true, FEATURE_GREEN_CONTEXTS));
	gpu_check(declare(false, FEATURE_GREEN_CONTEXTS));
	assert_int_not_equal(declare(true, NO_SUCH_FEATURE), CUDA_SUCCESS);
	unsubscribe_counter();
	if (!cuGreenCtxCreate)
		gpu_skip("this driver has no green contexts");
	gpu_check(green_make(&made));
	gpu_check(cuGreenCtxDestroy(made));
}

/* To refresh a graph, we call the driver, which the program did not. */
TEST(graphs_follow_unheard)
{
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	graph_assert_ran(exec, NODES, set);
	gpu_set_partition(&gpu, after);
	gpu_check(subscribe_counter(&counter.handle));
	counter.launches = counter.others = 0;
	gpu_check(enable_launches(true));
	gpu_check(enable_one_domain(true, API));
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(enable_one_domain(false, API));
	/* Its nodes are uploaded again, and perhaps one that the driver puts in front. */
	assert_in_range(counter.launches, NODES, NODES + 1);
	assert_int_equal(counter.others, 2); /* the call begins, and has ended */
	unsubscribe_counter();
	gpu_check(cuCtxSynchronize());
	graph_assert_follows(exec, NODES, set);
	graph_end(exec, graph);
}

/* --- tools that subscribe and unsubscribe while others launch ---------------------------------------------- */

/* A tool; each has a callback of its own. */
struct tool {
	subscriber_callback *callback;
	atomic_bool is_there; /* no callback may come when this is false */
	atomic_bool inside;   /* a callback has been called, */
	atomic_bool may_go;   /* and returns as soon as this is set */
};

static void hear_of(const struct tool *tool, const void *user)
{
	assert_ptr_equal(user, tool);
	assert_true(tool->is_there);
}

static subscriber_callback hear_first, hear_second, stay, leave_inside;
static struct tool first = {.callback = hear_first}, second = {.callback = hear_second}, staying = {.callback = stay},
                   leaving = {.callback = leave_inside};

/* Takes as long as a launch, so that tools often unsubscribe in the middle of it. */
static void hear_for_a_while(const struct tool *tool, const void *user)
{
	for (int i = 0; i < 200; i++)
		hear_of(tool, user);
}

static void hear_first(void *user, int domain, int id, const void *parameters)
{
	hear_for_a_while(&first, user);
}

static void hear_second(void *user, int domain, int id, const void *parameters)
{
	hear_for_a_while(&second, user);
}

static void come(struct tool *tool)
{
	tool->is_there = true;
	gpu_check(tool_subscribe(&counter.handle, tool->callback, tool));
	gpu_check(enable_launches(true));
}

static void go(struct tool *tool)
{
	unsubscribe_counter();
	tool->is_there = false;
}

static atomic_uint launched;
static atomic_bool ends;

static void *launch_all_the_time(void *argument)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	while (!ends) {
		gpu_launch_empty(&gpu);
		launched++;
	}
	return NULL;
}

#define LAUNCHERS 3
#define TURNS 1000

TEST(tools_that_take_turns)
{
	pthread_t threads[LAUNCHERS];

	ends = false;
	for (int i = 0; i < LAUNCHERS; i++)
		threads[i] = thread_start(launch_all_the_time, NULL);
	for (int turn = 0; turn < TURNS; turn++) {
		struct tool *tool = turn % 2 == 0 ? &first : &second;
		unsigned int seen = launched;

		come(tool);
		while (launched == seen)
			sched_yield();
		go(tool);
	}
	ends = true;
	for (int i = 0; i < LAUNCHERS; i++)
		pthread_join(threads[i], NULL);
	gpu_check(cuCtxSynchronize());
	gpu_assert_inside(set);
}

/* Stays in the callback until it may return. */
static void stay(void *user, int domain, int id, const void *parameters)
{
	hear_of(&staying, user);
	staying.inside = true;
	while (!staying.may_go)
		sched_yield();
	hear_of(&staying, user);
}

static void *launch_once(void *argument)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_launch_empty(&gpu);
	return NULL;
}

/* Starts a launch on another thread, and waits until it is in the tool's callback. */
static pthread_t go_inside(void)
{
	staying.inside = staying.may_go = false;
	come(&staying);
	pthread_t thread = thread_start(launch_once, NULL);

	while (!staying.inside)
		sched_yield();
	return thread;
}

static void take_signal(int signal)
{
}

/* Few times: all of this must end within SLOT_PATIENCE_MS. */
static void *disturb_and_let_go(void *waiting)
{
	for (int i = 0; i < 10; i++) {
		pthread_kill(*(pthread_t *)waiting, SIGUSR1);
		clock_pause_us(1000);
	}
	staying.may_go = true;
	return NULL;
}

/* Signals that the program handles interrupt the system calls of the wait. */
TEST(leaving_keeps_errno)
{
	const struct sigaction action = {.sa_handler = take_signal};

	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	pthread_t self = pthread_self(), inside = go_inside(), other = thread_start(disturb_and_let_go, &self);

	errno = EDOM;
	go(&staying);
	assert_int_equal(errno, EDOM);
	pthread_join(other, NULL);
	pthread_join(inside, NULL);
}

/* The callback returns only after the thread that unsubscribes has gone on. */
TEST(leaving_does_not_wait_for_ever)
{
	if (!gpu_is_simulated())
		gpu_skip("what the driver's own functions wait for is not known");
	pthread_t inside = go_inside();

	unsubscribe_counter();
	staying.may_go = true;
	pthread_join(inside, NULL);
	gpu_assert_inside(set);
	/* The next tool is not affected. */
	come(&first);
	gpu_assert_inside(set);
	go(&first);
}

/* A tool that unsubscribes in its own callback does not wait. */
static void leave_inside(void *user, int domain, int id, const void *parameters)
{
	hear_of(&leaving, user);
	go(&leaving);
}

#define TOO_MANY_TO_WAIT 1000

TEST(leaving_from_inside)
{
	for (int i = 0; i < TOO_MANY_TO_WAIT; i++) {
		come(&leaving);
		gpu_launch_empty(&gpu);
		assert_false(leaving.is_there);
	}
	gpu_check(cuCtxSynchronize());
	gpu_assert_inside(set);
}

FIXTURE(set_up)
{
	graph_set_up(NULL);
	set = before;
	gpu_set_partition(&gpu, set);
}

RUN_TESTS_IN(set_up, NULL, NULL, NULL)
