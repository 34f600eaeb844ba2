/*
 * A quota holds a program to its share of the time in the middle of kernels, whatever it does: and whoever has none has no
 * thread of ours, and its driver is as it was.
 *
 * Each case is a process of its own, since a process is judged once.
 */
#include "base/proc.h"
#include "state/segment.h"
#include "support/child.h"
#include "support/first_gpu.h"
#include "support/kernel.h"
#include "support/timed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct segment_quota third = {.run_us = 30000, .period_us = 100000};
static const struct segment_quota little = {.run_us = 1000, .period_us = 10000000};
static const struct segment_quota plenty = {.run_us = 9900000, .period_us = 10000000};
static const struct segment_quota max = {.run_us = 100000, .period_us = 100000};

/* --- work ----------------------------------------------------------------------------------------------------------- */

static void give(struct segment_quota quota)
{
	timed_give(&(struct segment_revision){.quota = quota});
}

static void give_and_wait(struct segment_quota quota)
{
	timed_give_and_wait(&(struct segment_revision){.quota = quota});
}

/* Busy until the program has been put aside for that long. */
static void work_until_aside(uint64_t aside_us)
{
	double end = timed_now_s() + PATIENCE_S;

	while (timed_look().aside_us < aside_us && timed_now_s() < end) {
		timed_launch(5);
		gpu_check(cuCtxSynchronize());
	}
	assert_true(timed_look().aside_us >= aside_us);
}

/* With work in flight, and put aside: this quota is used up after 1 ms, for the next 10 s. */
static void be_aside(void)
{
	timed_open_gpu();
	give_and_wait(little);
	timed_launch(1000);
	double end = timed_now_s() + PATIENCE_S;

	while (timed_look().aside_us < 5000 && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(timed_look().aside_us >= 5000);
}

/* --- the quota -------------------------------------------------------------------------------------------------------- */

/* The driver has another name beside it. */
#define SHIM "/libcuda.so.1"

static void have_none(void)
{
	size_t free_bytes, total_bytes;

	timed_open_gpu();
	timed_launch(20);
	gpu_check(cuCtxSynchronize());
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

/* A generous bound, since the machine may be busy: without a quota all of the time would be used. */
static void keep_to_it(void)
{
	timed_open_gpu();
	give_and_wait(third);
	uint64_t before = timed_look().present_us;
	double begin = timed_now_s();

	work_until_aside(700000);
	double share = (double)(timed_look().present_us - before) / 1e6 / (timed_now_s() - begin);

	if (share > 0.4)
		fail_msg("present for %.2f of the time", share);
}

static void lose_it(void)
{
	be_aside();
	give(max);
	gpu_check(cuCtxSynchronize());
	timed_wait_for_state(SEGMENT_TIME_UNLIMITED);
	timed_wait_until_thread_is_gone();
	size_t free_bytes, total_bytes;

	kernel_was_asked_by(SHIM);
	gpu_check(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	assert_false(kernel_was_asked_by(SHIM));
	give_and_wait(third);
	work_until_aside(10000);
}

/* What our thread has asked the kernel driver. */
static atomic_uint questions;

static void count_questions(unsigned long request, const void *argument)
{
	char name[16] = "";

	(void)request;
	(void)argument;
	prctl(PR_GET_NAME, name);
	if (strcmp(name, "nvtaskset") == 0)
		atomic_fetch_add(&questions, 1);
}

/* Looking for its channels would disturb a program that starts. */
static void not_use_it_up(void)
{
	kernel_listen(count_questions);
	timed_open_gpu();
	give_and_wait(plenty);
	double end = timed_now_s() + 0.1;

	while (timed_now_s() < end) {
		timed_launch(5);
		gpu_check(cuCtxSynchronize());
	}
	assert_int_equal(atomic_load(&questions), 0);
	give(third);
	work_until_aside(10000);
	assert_true(atomic_load(&questions) > 0);
	kernel_listen(NULL);
}

static void have_several_contexts(void)
{
	struct gpu_under_test other;

	be_aside();
	give(third);
	gpu_open(&other, 0);
	gpu_run(&other);
	gpu_close(&other);
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuCtxSynchronize());
	assert_int_equal(timed_look().state, SEGMENT_TIME_IN_FORCE);
}

/* The calls in which it is found are launches into a capture, which stays as it is. */
static void give_while_capturing(void)
{
	double end = timed_now_s() + PATIENCE_S;
	CUgraph graph;
	CUgraphExec exec;
	CUstream stream;

	timed_open_gpu();
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	give(third);
	gpu_launch_empty(&gpu);
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	while (timed_look().state <= SEGMENT_TIME_PENDING && timed_now_s() < end) {
		uint64_t cycles = 0;
		void *parameters[] = {&gpu.output, &cycles};

		gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
		timed_sleep_ms(1);
	}
	assert_string_equal(segment_time_text(timed_look().state), segment_time_text(SEGMENT_TIME_IN_FORCE));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphLaunch(exec, stream));
	gpu_check(cuStreamSynchronize(stream));
	work_until_aside(10000);
}

/* --- what is never put aside -------------------------------------------------------------------------------------------- */

static void use_managed_memory(void)
{
	CUdeviceptr memory;

	be_aside();
	gpu_check(cuMemAllocManaged(&memory, 4096, 1));
	gpu_check(cuCtxSynchronize());
	timed_wait_for_state(SEGMENT_TIME_MANAGED);
	timed_wait_until_thread_is_gone();
	give(third);
	gpu_run(&gpu);
	timed_launch(1);
	timed_wait_for_state(SEGMENT_TIME_MANAGED);
	assert_false(timed_has_thread());
}

static void share_memory(void)
{
	char handle[64];

	be_aside();
	gpu_check(cuIpcGetMemHandle(handle, gpu.output));
	gpu_check(cuCtxSynchronize());
	timed_wait_for_state(SEGMENT_TIME_SHARED);
	timed_wait_until_thread_is_gone();
}

/* Whatever it was given, and however long it works: it is not put aside once, and the kernel driver is not asked. */
static void assert_never_put_aside(enum segment_time_state why)
{
	give(little);
	gpu_run(&gpu);
	timed_launch(100);
	timed_wait_for_state(why);
	timed_wait_until_thread_is_gone();
	kernel_was_asked_by(SHIM);
	timed_launch(100);
	gpu_check(cuCtxSynchronize());
	assert_int_equal(timed_look().aside_us, 0);
	assert_false(timed_has_thread());
	assert_false(kernel_was_asked_by(SHIM));
}

static void have_managed_memory(void)
{
	CUdeviceptr memory;

	timed_open_gpu();
	gpu_check(cuMemAllocManaged(&memory, 4096, 1));
	assert_never_put_aside(SEGMENT_TIME_MANAGED);
}

/* The GPU is asked once the way to the kernel driver is known, which takes calls. */
static void run_where_any_memory_is_used(void)
{
	double end = timed_now_s() + PATIENCE_S;

	setenv("SIM_FAULTS", "pageable", 1);
	timed_open_any_gpu();
	if (!timed_uses_any_memory())
		timed_leave_out("kernels may use the driver's memory only here");
	give(little);
	while (timed_look().state <= SEGMENT_TIME_PENDING && timed_now_s() < end)
		gpu_run(&gpu);
	assert_never_put_aside(SEGMENT_TIME_PAGEABLE);
}

static void have_shared_memory(void)
{
	char handle[64];

	timed_open_gpu();
	gpu_check(cuIpcGetMemHandle(handle, gpu.output));
	assert_never_put_aside(SEGMENT_TIME_SHARED);
}

/* When the call returns, nothing is aside: its memory may be used at once. */
static void come_back_for_managed_memory(void)
{
	CUdeviceptr memory;

	be_aside();
	gpu_check(cuMemAllocManaged(&memory, 4096, 1));
	uint64_t aside_us = timed_look().aside_us;

	gpu_check(cuCtxSynchronize());
	assert_in_range(timed_look().aside_us, aside_us, aside_us + 100000);
}

static void go_on_although_aside(void)
{
	setenv("SIM_FAULTS", "inert-aside", 1);
	timed_open_gpu();
	give_and_wait(third);
	double end = timed_now_s() + PATIENCE_S;

	while (timed_look().state == SEGMENT_TIME_IN_FORCE && timed_now_s() < end) {
		timed_launch(5);
		gpu_check(cuCtxSynchronize());
	}
	assert_int_equal(timed_look().state, SEGMENT_TIME_NO_EFFECT);
	timed_wait_until_thread_is_gone();
}

static void be_refused(void)
{
	setenv("SIM_FAULTS", "no-aside", 1);
	timed_open_gpu();
	give_and_wait(third);
	timed_launch(200);
	timed_wait_for_state(SEGMENT_TIME_NO_CHANNELS);
	gpu_check(cuCtxSynchronize());
	timed_wait_until_thread_is_gone();
}

/* --- the end ---------------------------------------------------------------------------------------------------------------- */

static void call_exit(void)
{
	be_aside();
	exit(0);
}

static void call_abort(void)
{
	signal(SIGABRT, SIG_DFL);
	be_aside();
	abort();
}

static void execute(void)
{
	be_aside();
	execlp("true", "true", (char *)NULL);
}

/* The child has a quota, and no thread before it has work of its own. */
static void fork_while_aside(void)
{
	be_aside();
	pid_t child = fork();

	if (child == 0)
		_exit(timed_has_thread() || timed_look().state != SEGMENT_TIME_NONE ? 1 : 0);
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	give(max);
	gpu_check(cuCtxSynchronize());
}

static void block_signals_nowhere(void)
{
	sigset_t before, after;

	sigemptyset(&before);
	sigemptyset(&after);
	timed_open_gpu();
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	give_and_wait(third);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int number = 1; number < SIGRTMAX; number++)
		assert_int_equal(sigismember(&before, number), sigismember(&after, number));
}

/* ---------------------------------------------------------------------------------------------------------------------------- */

TIMED_TEST(test_without, timed_run_and_pass, have_none)
TIMED_TEST(test_holds, timed_run_and_pass, keep_to_it)
TIMED_TEST(test_is_looked_for_late, timed_run_and_pass, not_use_it_up)
TIMED_TEST(test_is_lifted, timed_run_and_pass, lose_it)
TIMED_TEST(test_several_contexts, timed_run_and_pass, have_several_contexts)
TIMED_TEST(test_captures, timed_run_and_pass, give_while_capturing)
TIMED_TEST(test_managed_memory, timed_run_on_simulator, use_managed_memory)
TIMED_TEST(test_shared_memory, timed_run_on_simulator, share_memory)
TIMED_TEST(test_managed_memory_first, timed_run_on_simulator, have_managed_memory)
TIMED_TEST(test_shared_memory_first, timed_run_on_simulator, have_shared_memory)
TIMED_TEST(test_any_memory, timed_run_and_pass, run_where_any_memory_is_used)
TIMED_TEST(test_managed_memory_at_once, timed_run_on_simulator, come_back_for_managed_memory)
TIMED_TEST(test_no_effect, timed_run_on_simulator, go_on_although_aside)
TIMED_TEST(test_refused, timed_run_on_simulator, be_refused)
TIMED_TEST(test_exit, timed_run_and_pass, call_exit)
TIMED_TEST(test_exec, timed_run_and_pass, execute)
TIMED_TEST(test_fork, timed_run_and_pass, fork_while_aside)
TIMED_TEST(test_signals, timed_run_and_pass, block_signals_nowhere)

static void test_abort(void **state)
{
	struct child_end end = timed_run(call_abort);

	(void)state;
	assert_true(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGABRT);
}

/* Ended while it is aside, without a last word: the GPU is as ever. */
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

static void test_killed(void **state)
{
	struct child_end end = timed_run(be_killed);

	(void)state;
	assert_true(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL);
	timed_run_and_pass(run_afterwards);
}

/* --- held by others ---------------------------------------------------------------------------------------------------------- */

#define HELD_MS 300 /* longer than a period */
#define NOT_POSSIBLE 77

static int stop(pid_t pid)
{
	kill(pid, SIGSTOP);
	timed_sleep_ms(HELD_MS);
	return kill(pid, SIGCONT) < 0;
}

/* As a debugger does: all threads, ours too. */
static int debug(pid_t pid)
{
	char path[32];
	pid_t threads[64];
	unsigned int count = 0;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);

	for (struct dirent *task = readdir(tasks); task && count < 64; task = readdir(tasks)) {
		pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);

		if (thread > 0 && ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0)
			threads[count++] = thread;
	}
	closedir(tasks);
	for (unsigned int i = 0; i < count; i++) {
		ptrace(PTRACE_INTERRUPT, threads[i], NULL, NULL);
		waitpid(threads[i], NULL, __WALL);
	}
	timed_sleep_ms(HELD_MS);
	for (unsigned int i = 0; i < count; i++)
		ptrace(PTRACE_DETACH, threads[i], NULL, NULL);
	return count < 2 ? NOT_POSSIBLE : 0;
}

static bool write_text(const char *directory, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", directory, name);
	int file = open(path, O_WRONLY | O_CLOEXEC);
	bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

	if (file >= 0)
		close(file);
	return done;
}

/* A control group of the new kind, or of the old one. */
static int freeze(pid_t pid)
{
	static const struct {
		const char *top, *file, *on, *off;
	} kinds[] = {
		{"/sys/fs/cgroup", "cgroup.freeze", "1", "0"},
		{"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"},
		{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
	};
	char directory[64], text[16];
	bool done = false;

	snprintf(text, sizeof text, "%d", (int)pid);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !done; i++) {
		snprintf(directory, sizeof directory, "%s/nvtaskset-test-%d", kinds[i].top, (int)pid);
		if (mkdir(directory, 0700) < 0)
			continue;
		if (write_text(directory, "cgroup.procs", text) && write_text(directory, kinds[i].file, kinds[i].on)) {
			timed_sleep_ms(HELD_MS);
			done = write_text(directory, kinds[i].file, kinds[i].off);
		}
		write_text(kinds[i].top, "cgroup.procs", text);
		rmdir(directory);
	}
	return done ? 0 : NOT_POSSIBLE;
}

static int (*hold)(pid_t pid);

/* Held for longer than a period while it is aside: it goes on as before. */
static void be_held(void)
{
	pid_t self = getpid();
	int status;

	be_aside();
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	give(third);
	pid_t holder = fork();

	if (holder == 0)
		_exit(hold(self));
	work_until_aside(timed_look().aside_us + 50000);
	give(max);
	gpu_check(cuCtxSynchronize());
	assert_int_equal(waitpid(holder, &status, 0), holder);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_POSSIBLE)
		fprintf(stderr, "NOT POSSIBLE");
	else
		assert_int_equal(status, 0);
}

static void run_held_by(int (*holder)(pid_t pid), const char *what)
{
	hold = holder;
	struct child_end end = timed_run(be_held);

	child_assert_passed(&end);
	if (strstr(end.errors, "NOT POSSIBLE"))
		gpu_skip(what);
}

static void test_stopped(void **state)
{
	(void)state;
	run_held_by(stop, "a program cannot be stopped here");
}

static void test_debugged(void **state)
{
	(void)state;
	run_held_by(debug, "a program cannot be debugged here");
}

static void test_frozen(void **state)
{
	(void)state;
	run_held_by(freeze, "control groups cannot be made here");
}

/* --- beside another program ------------------------------------------------------------------------------------------------ */

static struct {
	atomic_uint kernels[2]; /* that have ended */
	atomic_bool ends;
} *both;

static void work_as(unsigned int number)
{
	while (!atomic_load(&both->ends)) {
		timed_launch(2);
		gpu_check(cuCtxSynchronize());
		atomic_fetch_add(&both->kernels[number], 2);
	}
}

static void work_with_quota(void)
{
	timed_open_gpu();
	give_and_wait(third);
	work_as(0);
}

static void work_without(void)
{
	timed_open_gpu();
	work_as(1);
}

static void share_gpu(char *path)
{
	timed_share_gpu(path);
	both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(both != MAP_FAILED);
}

static void wait_for_both(unsigned int more)
{
	unsigned int from[2] = {atomic_load(&both->kernels[0]), atomic_load(&both->kernels[1])};
	double end = timed_now_s() + PATIENCE_S;

	while ((both->kernels[0] < from[0] + more || both->kernels[1] < from[1] + more) && timed_now_s() < end)
		timed_sleep_ms(1);
}

/* Both always want to timed_run, and one for 30 of 100 ms: it has half of that time, and the other one all the rest, 85 of 100, which
 * is 5.7 times as much. Without the quota each would have the same; with a GPU for each, 3.3. */
static void test_neighbour(void **state)
{
	char path[] = "/tmp/nvtaskset-gpu-XXXXXX";
	struct child children[2];
	unsigned int before[2];

	(void)state;
	share_gpu(path);
	children[0] = child_start(work_with_quota);
	children[1] = child_start(work_without);
	wait_for_both(4);
	for (unsigned int i = 0; i < 2; i++)
		before[i] = atomic_load(&both->kernels[i]);
	wait_for_both(100);
	unsigned int with = both->kernels[0] - before[0], without = both->kernels[1] - before[1];

	atomic_store(&both->ends, true);
	for (unsigned int i = 0; i < 2; i++) {
		struct child_end end = child_wait(&children[i]);

		child_assert_passed(&end);
		timed_skip_if_skipped(&end);
	}
	unlink(path);
	unsetenv("SIM_GPU");
	assert_true(with > 0);
	if (without < 4 * with)
		fail_msg("%u kernels with a quota, %u without", with, without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_holds),
		cmocka_unit_test(test_is_looked_for_late),
		cmocka_unit_test(test_is_lifted),
		cmocka_unit_test(test_several_contexts),
		cmocka_unit_test(test_captures),
		cmocka_unit_test(test_managed_memory),
		cmocka_unit_test(test_shared_memory),
		cmocka_unit_test(test_managed_memory_first),
		cmocka_unit_test(test_shared_memory_first),
		cmocka_unit_test(test_any_memory),
		cmocka_unit_test(test_managed_memory_at_once),
		cmocka_unit_test(test_no_effect),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_exit),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_debugged),
		cmocka_unit_test(test_frozen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
