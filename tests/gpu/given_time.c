/*
 * What a program keeps that was given a quota, a priority or a weight: its profiler, its scheduling, its speed where nobody is in
 * its way; and what it was given, whatever its contexts do.
 *
 * Each case is a process of its own.
 */
#include "../alone.h"
#include "../cases.h"
#include "../own_board.h"
#include "base/clock.h"
#include "base/proc.h"
#include "gpu/topology/rm_abi.h"
#include "state/group/budget.h"
#include "state/kernels/counts.h"
#include "state/segment/segment.h"
#include "support/client.h"
#include "support/graph.h"
#include "support/kernel.h"
#include "support/subscriber.h"
#include "support/timed.h"

static const struct segment_revision plenty = {.quota = {.run_us = 9900000, .period_us = 10000000}};
static const struct segment_revision quarter = {.quota = {.run_us = 5000, .period_us = 20000}};
static const struct segment_revision of_priority = {.rank = {.priority = 81}};
static const struct segment_revision of_weight = {.rank = {.weight = 300}};

/* Busy until it has been suspended for more time than a suspension of before may still add. */
static void assert_is_suspended(const struct segment_revision *by)
{
	double end = timed_now_s() + PATIENCE_S;
	uint64_t enough = timed_look().aside_us + 2 * by->quota.period_us;

	while (timed_look().aside_us < enough && timed_look().state <= SEGMENT_TIME_IN_FORCE && timed_now_s() < end)
		timed_work(5);
	assert_true(timed_look().aside_us >= enough);
}

/* Something happened that nobody counted; all that came before and comes after is counted. */
static void make_gap(void)
{
	struct segment segment = gpu_own_segment();

	counts_note_gap_everywhere(&segment, COUNTS_SLOT_USED);
	segment_close(&segment);
}

/* --- our thread -------------------------------------------------------------------------------------------------------- */

static pid_t our_thread(void)
{
	timed_wait_until(timed_has_thread());
	return timed_thread();
}

/* The thread that gives the reason for ours keeps one processor for itself, and all of it where it may. */
TIMED(a_real_time_program)
{
	const struct sched_param first = {.sched_priority = 10};
	cpu_set_t all, one, ours;

	alarm(PATIENCE_S);
	timed_open_gpu();
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	sched_setscheduler(0, SCHED_FIFO, &first);
	timed_give(&plenty);
	gpu_launch_empty(&gpu);
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){.sched_priority = 0});
	pid_t thread = our_thread();

	assert_int_equal(sched_getaffinity(thread, sizeof ours, &ours), 0);
	assert_true(CPU_COUNT(&ours) >= CPU_COUNT(&all));
	assert_int_equal(sched_getscheduler(thread), SCHED_OTHER);
}

/* How often it has slept so far. */
static unsigned long sleeps_of(pid_t thread)
{
	char text[4096];

	proc_read_text(text, sizeof text, "/proc/self/task/%d/status", (int)thread);
	const char *line = strstr(text, "\nvoluntary_ctxt_switches:");

	assert_non_null(line);
	return strtoul(strchr(line, ':') + 1, NULL, 10);
}

static bool rests(pid_t thread)
{
	unsigned long slept = sleeps_of(thread);

	timed_sleep_ms(500);
	return sleeps_of(thread) == slept;
}

static void come_to_rest(pid_t thread)
{
	timed_until (rests(thread))
		;
}

static void assert_wakes(pid_t thread, void (*launch)(void))
{
	come_to_rest(thread);
	unsigned long slept = sleeps_of(thread);

	launch();
	timed_until (sleeps_of(thread) != slept)
		timed_sleep_ms(1);
}

static CUgraphExec exec;

static void launch_plainly(void)
{
	gpu_launch_empty(&gpu);
	gpu_check(cuCtxSynchronize());
}

/* A call that waits would wake the thread as well. */
static void launch_graph(void)
{
	gpu_check(cuGraphLaunch(exec, NULL));
}

/* The thread comes to rest, and wakes with the next launch, also of a graph. */
TIMED(an_idle_program)
{
	timed_open_gpu();
	timed_give_and_wait(&plenty);
	gpu_check(cuCtxSynchronize());
	for (unsigned int i = 0; i < NODES; i++)
		outputs[i] = gpu_new_output(&gpu);
	exec = graph_instantiate(graph_make());
	launch_graph();
	gpu_check(cuCtxSynchronize());
	pid_t thread = our_thread();

	assert_wakes(thread, launch_plainly);
	assert_wakes(thread, launch_graph);
}

/* --- clients of MPS ---------------------------------------------------------------------------------------------------- */

/* As CUPTI for its kernels' times: behind our callback, slot 1 of a plain launch becomes the tool's. Hopper's slot 1 has 13 bits
 * from bit 336 on, and the first one enables it. */
static void take_slot_1(void *user, int domain, int id, const void *parameters)
{
	if (domain == LAUNCHES && id == BEFORE_UPLOAD)
		((uint32_t *)(uintptr_t)((const uint64_t *)parameters)[4])[336 / 32] &= ~(1u << 336 % 32);
}

static void launch_each(unsigned int count)
{
	for (unsigned int i = 0; i < count && timed_look().bounded == 0; i++) {
		gpu_launch_empty(&gpu);
		gpu_check(cuCtxSynchronize());
	}
}

static const struct segment_revision *given;

static void be_profiled(void)
{
	uint32_t tool;

	alarm(PATIENCE_S);
	timed_open_gpu();
	timed_give_to_client(given);
	gpu_check(tool_subscribe_with_name(&tool, take_slot_1, NULL, "test"));
	gpu_check(tool_enable(1, tool, LAUNCHES, BEFORE_UPLOAD));
	launch_each(20);
	gpu_check(tool_unsubscribe(tool));
	launch_each(20);
	assert_each(timed_look().bounded, 0, timed_look().held, 0);
}

TEST_WITH(client_set_up, client_tear_down, a_profiler_beside_a_priority_and_a_quota)
{
	given = &of_priority;
	timed_run_and_pass(be_profiled);
	given = &plenty;
	timed_run_and_pass(be_profiled);
}

/* Nothing is done for a weight there, and peers learn of work. */
TIMED_WITH(client_set_up, client_tear_down, timed_run_and_pass, an_idle_client_with_a_weight)
{
	timed_open_gpu();
	timed_give(&of_weight);
	launch_plainly();
	assert_wakes(our_thread(), launch_plainly);
	_exit(0);
}

/* Nobody else is there: 60 launches behind a kernel that does not end for long. */
TIMED_WITH(client_set_up, client_tear_down, timed_run_and_pass, a_queue_where_nobody_is_higher)
{
	timed_open_gpu();
	timed_give_to_client(&of_priority);
	gpu_check(cuCtxSynchronize());
	timed_launch_into(NULL, 1, UINT64_C(60000000000));
	timed_launch_into(NULL, 60, 0);
	assert_each(timed_look().bounded, 0, timed_look().held, 0);
	_exit(0);
}

/* --- in turns ---------------------------------------------------------------------------------------------------------- */

static bool is_suspension(unsigned long request, const void *argument)
{
	const struct rm_control *call = argument;

	return request == IOCTL_CONTROL && call->command == 0x2080110b && *(const uint8_t *)(uintptr_t)call->parameters;
}

static atomic_bool is_armed, is_blocked, has_gone;

/* Our thread decides to suspend the program, and gets no processor until the context has gone. */
static void block(unsigned long request, const void *argument)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	if (strcmp(name, "nvtaskset") != 0 || !is_suspension(request, argument) || !atomic_exchange(&is_armed, false))
		return;
	atomic_store(&is_blocked, true);
	while (!atomic_load(&has_gone))
		timed_sleep_ms(1);
}

/* What it has in a period is used up at once. */
TIMED(a_context_ends_as_it_is_stopped)
{
	const struct segment_revision little = {.quota = {.run_us = 1000, .period_us = 500000}};
	double end = timed_now_s() + PATIENCE_S;

	timed_open_gpu();
	timed_give_and_wait(&little);
	kernel_listen(block);
	atomic_store(&is_armed, true);
	while (!atomic_load(&is_blocked) && timed_now_s() < end)
		timed_work(1);
	gpu_close(&gpu);
	atomic_store(&has_gone, true);
	timed_sleep_ms(100); /* for whatever our thread does without it */
	gpu_open(&gpu, 0);
	assert_is_suspended(&little);
}

/* Without a context, with a gap in its counts: there is nothing to stop; nor while another one is being made. */
TIMED(no_context_for_a_while)
{
	setenv("SIM_FAULTS", "slow-contexts", 1);
	alarm(PATIENCE_S); /* a driver whose channels stay suspended waits for ever */
	timed_open_gpu();
	timed_give_and_wait(&quarter);
	launch_each(1);
	make_gap();
	gpu_close(&gpu);
	for (int i = 0; i < 300 && timed_look().state <= SEGMENT_TIME_IN_FORCE; i++)
		timed_sleep_ms(1);
	gpu_open(&gpu, 0);
	assert_is_suspended(&quarter);
}

static void change_context(unsigned int kernels)
{
	gpu_close(&gpu);
	gpu_open(&gpu, 0);
	timed_launch(kernels);
}

/* A program that is never suspended, since a context always comes or goes, says so for as long. */
TIMED(contexts_come_and_go)
{
	timed_open_gpu();
	timed_give_and_wait(&quarter);
	timed_until (timed_look().state == SEGMENT_TIME_CHANGING) {
		change_context(20);
		gpu_check(cuCtxSynchronize());
	}
	timed_until (timed_look().state == SEGMENT_TIME_IN_FORCE)
		timed_work(5);
}

/* Others do not see its priority; its state says so, in turns and as a client of MPS, until there is a place again. */
static void be_left_out(enum segment_time_state usual)
{
	timed_until (timed_look().state == usual)
		timed_work(5);
	own_board_fill(getppid());
	timed_until (timed_look().state == SEGMENT_TIME_NO_PLACE)
		timed_work(5);
	own_board_fill(0);
	timed_until (timed_look().state == usual)
		timed_work(5);
}

static void be_left_out_in_turns(void)
{
	timed_open_gpu();
	timed_give_and_wait(&of_priority);
	be_left_out(SEGMENT_TIME_IN_FORCE);
}

static void be_left_out_side_by_side(void)
{
	timed_open_gpu();
	timed_give_to_client(&of_priority);
	be_left_out(SEGMENT_TIME_HELD);
}

/* Not beside programs of others, whose places are taken as well. */
TEST(no_place_left)
{
	timed_run_on_simulator(be_left_out_in_turns);
}

TEST_WITH(client_set_up, client_tear_down, no_place_left_side_by_side)
{
	timed_run_on_simulator(be_left_out_side_by_side);
}

#define LONG_US 2000000

static _Atomic uint64_t suspended_in; /* the period of the first suspension that was not put off; 0: none yet */

static uint64_t long_period(void)
{
	return budget_period(LONG_US * INT64_C(1000), process_clock_ns());
}

static void note_suspension(unsigned long request, const void *argument)
{
	uint64_t none = 0;

	if (is_suspension(request, argument))
		atomic_compare_exchange_strong(&suspended_in, &none, long_period());
}

/* What is put off is not left until the next period. */
static bool is_tried_again(void)
{
	uint64_t period = long_period();

	atomic_store(&suspended_in, 0);
	change_context(20);
	timed_wait_until(atomic_load(&suspended_in) != 0);
	return atomic_load(&suspended_in) == period;
}

/* Where the period ends meanwhile, nothing is seen. */
TIMED(what_is_put_off_is_tried_again)
{
	const struct segment_revision little = {.quota = {.run_us = 1000, .period_us = LONG_US}};

	timed_open_gpu();
	timed_give_and_wait(&little);
	kernel_listen(note_suspension);
	timed_until (is_tried_again())
		;
}

/* A context takes some 70 handles, and none is used again. */
TIMED(thousands_of_contexts)
{
	setenv("SIM_FAULTS", "old-handles", 1);
	timed_open_gpu();
	timed_give_and_wait(&quarter);
	for (int i = 0; i < 3; i++)
		change_context(0);
	assert_is_suspended(&quarter);
}

static void work_as(uint32_t priority, bool has_gap)
{
	timed_open_gpu();
	timed_give_and_wait(&(struct segment_revision){.rank = {.priority = (uint16_t)(priority + 1)}});
	if (has_gap)
		make_gap();
	for (int i = 0; i < 100; i++) {
		timed_launch(10);
		if (i > 0)
			gpu_check(cuCtxSynchronize());
	}
}

static void work_high(void)
{
	work_as(80, true);
	/* Where it has no rank, it says so. */
	if (timed_look().state != SEGMENT_TIME_IN_FORCE)
		fprintf(stderr, "no rank\n");
}

static void work_low(void)
{
	work_as(20, false);
	if (timed_look().aside_us > 100000)
		fprintf(stderr, "was suspended\n");
}

static bool says(const struct child_end *end, const char *text)
{
	return strstr(end->errors, text) != NULL;
}

TEST(a_gap_in_the_counts)
{
	char path[] = "/tmp/nvtaskset-gpu-XXXXXX";

	timed_share_gpu(path);
	struct child high = child_start(work_high), low = child_start(work_low);
	struct child_end of_high = child_wait(&high), of_low = child_wait(&low);

	unlink(path);
	assert_true(says(&of_high, "no rank") || says(&of_low, "was suspended"));
}

RUN_TESTS_ALONE(NULL, NULL, NULL, NULL)
