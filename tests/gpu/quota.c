/*
 * A quota holds a program to its share of the time in the middle of kernels, whatever it does: and whoever has none has no
 * thread of ours, and its driver is as it was.
 *
 * Each case is a process of its own, since a process is judged once.
 */
#include "../cases.h"
#include "base/clock.h"
#include "base/proc.h"
#include "gpu/topology/rm_abi.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "support/kernel.h"
#include "support/pair.h"
#include "support/timed.h"

static const struct segment_quota third = {.run_us = 30000, .period_us = 100000};
static const struct segment_quota little = {.run_us = 1000, .period_us = 10000000};
static const struct segment_quota max = {.run_us = 100000, .period_us = 100000};

static void give(struct segment_quota quota)
{
	timed_give(&(struct segment_revision){.quota = quota});
}

static void give_and_wait(struct segment_quota quota)
{
	timed_give_and_wait(&(struct segment_revision){.quota = quota});
}

/* Busy until the program has been suspended for that long. */
static void work_until_aside(uint64_t aside_us)
{
	timed_until (timed_look().aside_us >= aside_us)
		timed_work(5);
}

/* With work in flight, and suspended: this quota is used up after 1 ms, for the next 10 s. */
static void be_aside(void)
{
	timed_open_gpu();
	give_and_wait(little);
	timed_launch(100);
	timed_wait_until(timed_look().aside_us >= 5000);
}

/* The driver has another name beside it. */
#define SHIM "/libcuda.so.1"

TIMED(without)
{
	size_t free_bytes, total_bytes;

	timed_open_gpu();
	timed_work(20);
	kernel_was_asked_by(SHIM); /* how much memory the context has */
	gpu_check(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	assert_false(timed_has_thread());
	assert_false(kernel_was_asked_by(SHIM));
	assert_int_equal(timed_look().state, SEGMENT_TIME_NONE);
	/* And the opposite, so that this can be seen. */
	give_and_wait(third);
	assert_true(timed_has_thread());
	gpu_check(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	assert_true(kernel_was_asked_by(SHIM));
}

/* Its share of the time, over several periods. */
static double share_of_time(void)
{
	uint64_t before = timed_look().present_us;
	double begin = timed_now_s();

	work_until_aside(timed_look().aside_us + 300000);
	return (double)(timed_look().present_us - before) / 1e6 / (timed_now_s() - begin);
}

/* A generous bound, and a busy machine may exceed it for some periods: without a quota all of the time is used, always. */
static void keep_within_a_third(void)
{
	timed_until (share_of_time() < 0.4)
		;
}

static const char *costs;

/* Before there is a second thread, which asks for costs. */
static void hold_at_costs(void)
{
	setenv("SIM_COSTS", costs, 1);
	timed_open_gpu();
	give_and_wait(third);
	keep_within_a_third();
}

/* It counts presence, and so what a stop costs: whatever that is. */
TEST(holds_at_half_and_twice_the_costs)
{
	for (unsigned int twice = 0; twice < 2; twice++) {
		costs = twice ? "200" : "50";
		ROW("%s %%", costs);
		timed_run_on_simulator(hold_at_costs);
	}
}

TIMED(is_lifted)
{
	be_aside();
	give(max);
	gpu_check(cuCtxSynchronize());
	timed_wait_for_state(SEGMENT_TIME_UNLIMITED);
	timed_wait_until(!timed_has_thread());
	size_t free_bytes, total_bytes;

	kernel_was_asked_by(SHIM);
	gpu_check(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	assert_false(kernel_was_asked_by(SHIM));
	give_and_wait(third);
	work_until_aside(10000);
}

/* --- another process edits it ------------------------------------------------------------------------------------ */

#define FOLLOWS_NS UINT64_C(20000000)

static atomic_bool is_aside; /* by the last order */
static _Atomic uint64_t back_at;

static void note_order(unsigned long request, const void *argument)
{
	const struct rm_control *call = argument;

	if (request != IOCTL_CONTROL || call->command != 0x2080110b)
		return;
	atomic_store(&is_aside, *(const uint8_t *)(uintptr_t)call->parameters);
	if (!atomic_load(&is_aside))
		atomic_store(&back_at, process_clock_ns());
}

static struct segment_quota wanted;
static uint64_t *edited_at; /* the editor says */

static void edit_parent(void)
{
	struct segment segment;
	struct error error;

	assert_int_equal(segment_open(&segment, getppid(), NULL, NULL), SEGMENT_FOUND);
	*edited_at = process_clock_ns();
	assert_done(segment_change(&segment, &(struct segment_revision){.quota = wanted}, NULL, &error));
	segment_close(&segment);
}

static void *synchronize(void *unused)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuCtxSynchronize());
	return NULL;
}

static uint64_t long_period(uint64_t time)
{
	return time - time % (little.period_us * UINT64_C(1000));
}

static bool is_early(uint64_t time)
{
	return time - long_period(time) < UINT64_C(5000000000);
}

/* No thread of the program launches, and it is some seconds until the period ends. */
static bool follows_at_once(struct segment_quota quota)
{
	timed_wait_until(is_early(process_clock_ns()));
	give(little);
	timed_launch(20);
	timed_wait_until(atomic_load(&is_aside));
	pthread_t thread = thread_start(synchronize, NULL);

	wanted = quota;
	child_passes(edit_parent);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(atomic_load(&back_at) >= *edited_at);
	assert_int_equal(long_period(atomic_load(&back_at)), long_period(*edited_at));
	return atomic_load(&back_at) - *edited_at <= FOLLOWS_NS;
}

/* In its first suspensions, our thread looks each ms. A busy machine may be late. */
TIMED(another_process_raises_it)
{
	const struct segment_quota more[] = {{9000000, 10000000}, {90000, 100000}, max};

	edited_at = mmap(NULL, sizeof *edited_at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	timed_open_gpu();
	kernel_listen(note_order);
	give_and_wait(third);
	work_until_aside(400000);
	for (size_t i = 0; i < COUNT_OF(more); i++) {
		ROW("%u us", more[i].run_us);
		timed_until (follows_at_once(more[i]))
			;
	}
}

/* The calls in which it is found are launches into a capture, which stays as it is. */
TIMED(captures)
{
	CUgraph graph;
	CUgraphExec exec;

	timed_open_gpu();
	CUstream stream = gpu_new_stream();

	give(third);
	gpu_launch_empty(&gpu);
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	timed_until (timed_look().state > SEGMENT_TIME_PENDING) {
		timed_launch_into(stream, 1, 0);
		timed_sleep_ms(1);
	}
	assert_string_equal(segment_time_text(timed_look().state), segment_time_text(SEGMENT_TIME_IN_FORCE));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphLaunch(exec, stream));
	gpu_check(cuStreamSynchronize(stream));
	work_until_aside(10000);
}

/* --- what is never suspended ------------------------------------------------------------------------------------- */

/* When the call returns, nothing is suspended: its memory may be used at once. Nor is it later. */
TIMED_BY(timed_run_on_simulator, managed_memory)
{
	CUdeviceptr memory;

	kernel_listen(note_order);
	be_aside();
	assert_true(atomic_load(&is_aside));
	gpu_check(cuMemAllocManaged(&memory, 4096, 1));
	assert_false(atomic_load(&is_aside));
	gpu_check(cuCtxSynchronize());
	timed_wait_for_state(SEGMENT_TIME_MANAGED);
	timed_wait_until(!timed_has_thread());
	assert_false(atomic_load(&is_aside));
	give(third);
	gpu_run(&gpu);
	timed_launch(1);
	timed_wait_for_state(SEGMENT_TIME_MANAGED);
	assert_false(timed_has_thread());
}

/* Whatever it was given, and however long it works: it is not suspended once, and the kernel driver is not asked. */
static void assert_never_put_aside(enum segment_time_state why)
{
	give(little);
	gpu_run(&gpu);
	timed_launch(100);
	timed_wait_for_state(why);
	timed_wait_until(!timed_has_thread());
	kernel_was_asked_by(SHIM);
	timed_work(100);
	assert_int_equal(timed_look().aside_us, 0);
	assert_false(timed_has_thread());
	assert_false(kernel_was_asked_by(SHIM));
}

/* The GPU is asked once the way to the kernel driver is known, which takes calls. */
TIMED(any_memory)
{
	setenv("SIM_FAULTS", "pageable", 1);
	timed_open_any_gpu();
	if (!timed_uses_any_memory())
		timed_leave_out("kernels may use the driver's memory only here");
	give(little);
	timed_until (timed_look().state > SEGMENT_TIME_PENDING)
		gpu_run(&gpu);
	assert_never_put_aside(SEGMENT_TIME_PAGEABLE);
}

TIMED_BY(timed_run_on_simulator, shared_memory_first)
{
	char handle[64];

	timed_open_gpu();
	gpu_check(cuIpcGetMemHandle(handle, gpu.output));
	assert_never_put_aside(SEGMENT_TIME_SHARED);
}

TIMED_BY(timed_run_on_simulator, no_effect)
{
	setenv("SIM_FAULTS", "inert-aside", 1);
	timed_open_gpu();
	give_and_wait(third);
	timed_until (timed_look().state != SEGMENT_TIME_IN_FORCE)
		timed_work(5);
	assert_int_equal(timed_look().state, SEGMENT_TIME_NO_EFFECT);
	timed_wait_until(!timed_has_thread());
}

TIMED_BY(timed_run_on_simulator, refused)
{
	setenv("SIM_FAULTS", "no-aside", 1);
	timed_open_gpu();
	give_and_wait(third);
	timed_launch(200);
	timed_wait_for_state(SEGMENT_TIME_NO_CHANNELS);
	gpu_check(cuCtxSynchronize());
	timed_wait_until(!timed_has_thread());
}

/* Each second time: it is suspended by the next try, and keeps its quota. */
TIMED_BY(timed_run_on_simulator, refused_now_and_then)
{
	setenv("SIM_FAULTS", "second-aside", 1);
	timed_open_gpu();
	give_and_wait((struct segment_quota){.run_us = 5000, .period_us = 20000});
	work_until_aside(200000);
	assert_int_equal(timed_look().state, SEGMENT_TIME_IN_FORCE);
}

/* A kernel writes to memory that is not there. What was in flight never ends, and nobody waits for it. */
TIMED(a_kernel_has_failed)
{
	uint64_t nowhere = 16, cycles = 0;
	void *arguments[] = {&nowhere, &cycles};

	timed_open_gpu();
	give_and_wait(third);
	timed_wait_until(gpu_kernels(&gpu).in_flight == 0);
	gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
	assert_int_equal(gpu_kernels(&gpu).in_flight, 1);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(gpu_kernels(&gpu).in_flight, 0);
	gpu_check(cuCtxDestroy_v2(gpu.context));
}

/* --- the end ----------------------------------------------------------------------------------------------------- */

TIMED(exit)
{
	be_aside();
	exit(0);
}

TIMED(exec)
{
	be_aside();
	execlp("true", "true", (char *)NULL);
}

static void be_forked(void)
{
	assert_false(timed_has_thread());
	assert_int_equal(timed_look().state, SEGMENT_TIME_NONE);
}

/* The child has a quota, and no thread before it has work of its own. It is not suspended. */
TIMED(fork)
{
	be_aside();
	child_passes(be_forked);
	give(max);
	gpu_check(cuCtxSynchronize());
}

/* All signals are for the program's own threads. */
TIMED(signals_of_the_program)
{
	char text[4096] = "";
	sigset_t all;

	sigfillset(&all);
	timed_open_gpu();
	give_and_wait(third);
	proc_read_text(text, sizeof text, "/proc/self/task/%d/status", (int)timed_thread());
	const char *line = strstr(text, "\nSigBlk:");

	assert_non_null(line);
	uint64_t blocked = strtoull(line + strlen("\nSigBlk:"), NULL, 16);

	for (int number = 1; number <= SIGRTMAX; number++) {
		if (sigismember(&all, number) == 1 && number != SIGKILL && number != SIGSTOP && !(blocked >> (number - 1) & 1))
			fail_msg("signal %d is not blocked", number);
	}
}

/* In its parent's context, whose channels are not the child's: so our thread waits for a way, and this comes from it. */
static void have_a_thread_of_its_own(void)
{
	alarm(2 * PATIENCE_S);
	give(third);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_PENDING);
}

TIMED_BY(timed_run_on_simulator, fork_goes_on)
{
	timed_open_gpu();
	give_and_wait(third);
	assert_true(timed_has_thread());
	timed_run_and_pass(have_a_thread_of_its_own);
}

/* Ended while it is suspended, with or without a last word: the GPU is as ever. */
static void call_abort(void)
{
	signal(SIGABRT, SIG_DFL);
	be_aside();
	abort();
}

static void be_killed(void)
{
	be_aside();
	kill(getpid(), SIGKILL);
}

static void run_afterwards(void)
{
	timed_open_gpu();
	gpu_run(&gpu);
}

static void assert_dies_of(int number, void (*body)(void))
{
	struct child_end end = timed_run(body);

	if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != number)
		fail_msg("the child ended with status %#x: %s", (unsigned int)end.status, end.errors);
	timed_run_and_pass(run_afterwards);
}

TEST(killed)
{
	assert_dies_of(SIGABRT, call_abort);
	assert_dies_of(SIGKILL, be_killed);
}

/* Stopped for longer than a period while it is suspended: it goes on as before. */
TIMED(stopped)
{
	pid_t self = getpid();

	be_aside();
	give(third);
	pid_t other = fork();

	if (other == 0) {
		kill(self, SIGSTOP);
		timed_sleep_ms(300);
		exit(kill(self, SIGCONT) < 0);
	}
	work_until_aside(timed_look().aside_us + 50000);
	give(max);
	gpu_check(cuCtxSynchronize());
	assert_ends_well(other);
}

static void work_with_quota(void)
{
	timed_open_gpu();
	give_and_wait(third);
	pair_work(0, 2);
}

static void work_without(void)
{
	timed_open_gpu();
	pair_work(1, 2);
}

/* Both always want to run, and one for 30 of 100 ms: it has half of that time, and the other one all the rest, 85 of 100, which
 * is 5.7 times as much. Without the quota each would have the same; with a GPU for each, 3.3. On a busy machine,
 * neither can keep its GPU busy all the time: so it is looked at several times. */
TEST_WITH(pair_set_up, pair_tear_down, neighbour)
{
	unsigned int with = 0, without = 0;

	pair_start(0, work_with_quota);
	pair_start(1, work_without);
	timed_until (with > 0 && without >= 4 * with) {
		unsigned int before[2] = {pair->programs[0].done, pair->programs[1].done};

		pair_wait_for_done(0, 100);
		pair_wait_for_done(1, 100);
		with = pair->programs[0].done - before[0];
		without = pair->programs[1].done - before[1];
	}
	pair_finish_both();
}

/* The last case: the quota stays the group's. */
TIMED(its_group_raises_it)
{
	timed_open_gpu();
	kernel_listen(note_order);
	give_and_wait(third);
	work_until_aside(400000);
	timed_wait_until(is_early(process_clock_ns()));
	timed_give_to_group(little);
	timed_launch(20);
	timed_wait_until(atomic_load(&is_aside));
	uint64_t edited = process_clock_ns();

	timed_give_to_group((struct segment_quota){9000000, 10000000});
	timed_wait_until(!atomic_load(&is_aside));
	assert_int_equal(long_period(atomic_load(&back_at)), long_period(edited));
}

RUN_TESTS(NULL, NULL)
