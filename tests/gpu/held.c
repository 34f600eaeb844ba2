/*
 * Launches of a client of MPS that are held back for its quota: nothing else waits for ever, whatever the held thread has or what
 * becomes of it. tests/gpu/held_beside.c has what is held back for other programs.
 *
 * A thread is held for ten seconds where it is not said otherwise: longer than any test waits.
 */
#include "../alone.h"
#include "../sanitized.h"
#include "base/proc.h"
#include "support/client.h"
#include "support/first_gpu.h"
#include "support/subscriber.h"
#include "support/timed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LITTLE {.run_us = 1000, .period_us = 10000000}
#define SOME {.run_us = 5000, .period_us = 100000}
#define ALL {.run_us = 10000, .period_us = 10000}

static void give(struct segment_quota quota)
{
	const struct segment_revision revision = {.quota = quota};

	timed_give(&revision);
}

static void be_client(struct segment_quota quota)
{
	timed_open_gpu();
	give(quota);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_HELD);
}

static void wait_until_used(uint64_t us)
{
	double end = timed_now_s() + PATIENCE_S;

	while (timed_look().present_us < us && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(timed_look().present_us >= us);
}

/* From here on, the next launch has to wait. */
static void be_client_who_has_used_all(struct segment_quota quota)
{
	be_client(quota);
	timed_launch(1);
	gpu_check(cuCtxSynchronize());
	wait_until_used(quota.run_us);
}

/* --- threads that are held ------------------------------------------------------------------------------------------ */

static struct launcher {
	pthread_t thread;
	void (*launches)(void);
	atomic_int id;
	atomic_bool has_launched;
} launcher;

static void launch_one(void)
{
	timed_launch(1);
}

static void *launch(void *data)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	atomic_store(&launcher.id, gettid());
	launcher.launches();
	atomic_store(&launcher.has_launched, true);
	return data;
}

static bool sleeps(int thread)
{
	char text[512];
	const char *state;

	proc_read_text(text, sizeof text, "/proc/self/task/%d/stat", thread);
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

/* It sleeps, again and again as one looks. */
#define TIMES_ASLEEP 20

static void wait_until_held(void)
{
	double end = timed_now_s() + PATIENCE_S;
	unsigned int times = 0;

	while (times < TIMES_ASLEEP && timed_now_s() < end) {
		int thread = atomic_load(&launcher.id);

		times = thread != 0 && sleeps(thread) ? times + 1 : 0;
		timed_sleep_ms(1);
	}
	assert_int_equal(times, TIMES_ASLEEP);
	assert_false(atomic_load(&launcher.has_launched));
}

static void hold(void (*launches)(void))
{
	launcher.launches = launches;
	assert_int_equal(pthread_create(&launcher.thread, NULL, launch, NULL), 0);
	wait_until_held();
}

static void wait_for_flag(const atomic_bool *flag)
{
	double end = timed_now_s() + PATIENCE_S;

	while (!atomic_load(flag) && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(atomic_load(flag));
}

static void wait_until_launched(void)
{
	wait_for_flag(&launcher.has_launched);
	assert_int_equal(pthread_join(launcher.thread, NULL), 0);
	gpu_check(cuCtxSynchronize());
}

static void hold_with_little(void)
{
	be_client_who_has_used_all((struct segment_quota)LITTLE);
	hold(launch_one);
}

/* --- holds end ------------------------------------------------------------------------------------------------------ */

#define LAUNCHES 60

/* It always wants to run: so it has what comes in each period, but for the last one; a half of it, since this machine may be
 * busy. If launches were held for longer than until a period begins in which there is room, it would have less. */
static void go_on(void)
{
	const struct segment_quota quota = {.run_us = 10000, .period_us = 200000};

	be_client(quota);
	double begin = timed_now_s();

	for (unsigned int i = 0; i < LAUNCHES; i++) {
		timed_launch(1);
		gpu_check(cuCtxSynchronize());
	}
	double periods = (timed_now_s() - begin) * 1e6 / quota.period_us;
	struct segment_time time = timed_look();

	assert_true(time.aside_us > 0);
	assert_true((double)time.present_us > quota.run_us * (periods - 1) / 2);
}

static void follow_edits(void)
{
	hold_with_little();
	give((struct segment_quota)ALL);
	wait_until_launched();
}

/* Not when the old quota would have let it go. */
static void follow_another_quota(void)
{
	hold_with_little();
	give((struct segment_quota)SOME);
	wait_until_launched();
	timed_launch(5);
	gpu_check(cuCtxSynchronize());
}

/* Before this, the daemon is there as it was. */
static void lose_mps(void)
{
	hold_with_little();
	client_lose_mps();
	wait_until_launched();
	timed_launch(3);
	gpu_check(cuCtxSynchronize());
}

/* Then nothing is in the way of anything, and what was used stays said. */
static void lift_quota(void)
{
	be_client((struct segment_quota)SOME);
	timed_launch(1);
	gpu_check(cuCtxSynchronize());
	wait_until_used(1);
	uint64_t used = timed_look().present_us;

	give((struct segment_quota)ALL);
	timed_wait_until_thread_is_gone();
	assert_string_equal(segment_time_text(timed_look().state), segment_time_text(SEGMENT_TIME_UNLIMITED));
	assert_true(timed_look().present_us >= used);
}

/* Its pipe could not be seen for a while. */
static void lose_mps_for_a_while(void)
{
	be_client_who_has_used_all((struct segment_quota)LITTLE);
	client_lose_mps();
	timed_wait_for_state(SEGMENT_TIME_MPS_GONE);
	timed_launch(3);
	gpu_check(cuCtxSynchronize());
	assert_int_equal(client_find_mps(), 0);
	timed_wait_for_state(SEGMENT_TIME_HELD);
	hold(launch_one);
	give((struct segment_quota)ALL);
	wait_until_launched();
}

/* What the command gives nobody, whoever has written it. */
static void obey_nonsense(void)
{
	be_client((struct segment_quota){.run_us = 0, .period_us = UINT32_MAX});
	timed_launch(1);
	gpu_check(cuCtxSynchronize());
	wait_until_used(SEGMENT_QUOTA_RUN_MIN_US);
	hold(launch_one);
	give((struct segment_quota){.run_us = 0, .period_us = 1});
	wait_until_launched();
	timed_launch(3);
	gpu_check(cuCtxSynchronize());
}

/* Kernels that take longer than a test waits: on a GPU, so long that it can wait for them in the end. NVIDIA's server may end the
 * next client, too, where one leaves kernels behind that run. */
static uint64_t many_cycles(void)
{
	return gpu_is_simulated() ? 4000000000 : 200000000;
}

/* More than may be in flight where launches are held, behind one that takes longer than they would be held. */
static void have_a_weight(void)
{
	char path[] = "/tmp/nvtaskset-gpu-XXXXXX";
	uint64_t cycles = many_cycles();
	void *parameters[] = {&gpu.output, &cycles};
	CUevent first;

	timed_share_gpu(path);
	be_client((struct segment_quota)SOME);
	timed_give(&(struct segment_revision){.quota = ALL, .rank = {.weight = 200}});
	timed_wait_for_state(SEGMENT_TIME_MPS_CLIENT);
	gpu_check(cuEventCreate(&first, 0));
	gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	gpu_check(cuEventRecord(first, NULL));
	timed_launch(60);
	assert_int_equal(cuEventQuery(first), CUDA_ERROR_NOT_READY);
	unlink(path);
	if (!gpu_is_simulated())
		gpu_check(cuCtxSynchronize());
}

/* How often our thread has slept so far. */
static unsigned long sleeps_of_ours(void)
{
	char text[4096];
	unsigned long count = 0;
	DIR *tasks = opendir("/proc/self/task");

	for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
		proc_read_text(text, sizeof text, "/proc/self/task/%s/status", task->d_name);
		const char *line = strncmp(text, "Name:\tnvtaskset\n", 16) == 0 ? strstr(text, "\nvoluntary_ctxt_switches:") : NULL;

		if (line)
			count = strtoul(strchr(line, ':') + 1, NULL, 10);
	}
	closedir(tasks);
	return count;
}

static void launch_many(void)
{
	timed_launch(30);
}

/* Behind launches that take long, somebody is held. Our thread looks once in a millisecond; when somebody comes, once more. */
static void look_rarely(void)
{
	char path[] = "/tmp/nvtaskset-gpu-XXXXXX";
	uint64_t cycles = many_cycles();
	void *parameters[] = {&gpu.output, &cycles};

	timed_share_gpu(path);
	be_client((struct segment_quota)SOME);
	timed_give(&(struct segment_revision){.quota = ALL, .rank = {.priority = 51}});
	timed_wait_for_state(SEGMENT_TIME_HELD);
	for (unsigned int i = 0; i < 16; i++)
		gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	hold(launch_many);
	timed_sleep_ms(200);
	double begin = timed_now_s();
	unsigned long before = sleeps_of_ours();

	timed_sleep_ms(500);
	unsigned long times = sleeps_of_ours() - before;

	assert_false(atomic_load(&launcher.has_launched));
	assert_true(before > 0);
	assert_true((double)times < (timed_now_s() - begin) * 2000);
	unlink(path);
	if (!gpu_is_simulated())
		wait_until_launched();
	_exit(0);
}

/* Others do not wait for a held thread that has nothing of theirs. */
static void use_other_calls(void)
{
	CUdeviceptr memory;
	CUstream stream;

	hold_with_little();
	gpu_check(cuMemAlloc_v2(&memory, 4096));
	gpu_check(cuMemsetD32_v2(memory, 1, 1024));
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamSynchronize(stream));
	gpu_check(cuStreamDestroy_v2(stream));
	gpu_check(cuMemFree_v2(memory));
	assert_false(atomic_load(&launcher.has_launched));
	give((struct segment_quota)ALL);
	wait_until_launched();
}

/* --- a lock around a launch ----------------------------------------------------------------------------------------- */

#define THREADS 2
#define TURNS 10

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *launch_in_turns(void *data)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	for (unsigned int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&mutex);
		timed_launch(1);
		pthread_mutex_unlock(&mutex);
	}
	return data;
}

static void share_mutex(void)
{
	pthread_t threads[THREADS];

	be_client((struct segment_quota)SOME);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_in_turns, NULL), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	gpu_check(cuCtxSynchronize());
	assert_true(timed_look().aside_us > 0);
}

/* --- signals -------------------------------------------------------------------------------------------------------- */

static atomic_bool is_handled;

static void note_signal(int number)
{
	(void)number;
	atomic_store(&is_handled, true);
}

/* Not what a program should do. */
static void launch_on_signal(int number)
{
	(void)number;
	timed_launch(1); /* NOLINT(bugprone-signal-handler,cert-sig30-c) */
	atomic_store(&is_handled, true);
}

/* The call goes on when the handler has returned: no launch fails because of a signal. */
static void handle_signals(void)
{
	signal(SIGUSR1, note_signal);
	hold_with_little();
	pthread_kill(launcher.thread, SIGUSR1);
	wait_for_flag(&is_handled);
	wait_until_held();
	give((struct segment_quota)ALL);
	wait_until_launched();
}

/* Both are held, and both go on. */
static void launch_in_handler(void)
{
	signal(SIGUSR1, launch_on_signal);
	hold_with_little();
	pthread_kill(launcher.thread, SIGUSR1);
	timed_sleep_ms(50);
	wait_until_held();
	assert_false(atomic_load(&is_handled));
	give((struct segment_quota)ALL);
	wait_until_launched();
	assert_true(atomic_load(&is_handled));
}

/* --- tools ---------------------------------------------------------------------------------------------------------- */

/* A profiler that launches a kernel of its own in each call that it hears of. The program's are counted nevertheless, of 1 to
 * 2 ms each. */
static _Thread_local bool is_in_tool;
static atomic_uint launches_of_tool;

static void launch_more(void *user, int domain, int id, const void *parameters)
{
	(void)user;
	(void)id;
	(void)parameters;
	if (domain == API && !is_in_tool) {
		is_in_tool = true;
		gpu_launch_empty(&gpu);
		atomic_fetch_add(&launches_of_tool, 1);
		is_in_tool = false;
	}
}

typedef CUresult table_enable_domain(uint32_t on, uint32_t handle, int domain);

#define TABLE_ENABLE_DOMAIN 7

static void launch_inside_of_launches(void)
{
	uint32_t tool;

	be_client((struct segment_quota)SOME);
	gpu_check(((table_subscribe_with_name *)subscriber_table()[TABLE_SUBSCRIBE_WITH_NAME])(&tool, launch_more, NULL, "test"));
	gpu_check(((table_enable_domain *)subscriber_table()[TABLE_ENABLE_DOMAIN])(1, tool, API));
	for (unsigned int i = 0; i < TURNS; i++)
		timed_launch(1);
	gpu_check(((table_unsubscribe *)subscriber_table()[TABLE_UNSUBSCRIBE])(tool));
	gpu_check(cuCtxSynchronize());
	assert_true(atomic_load(&launches_of_tool) >= TURNS);
	assert_true(timed_look().aside_us > 0);
	wait_until_used(TURNS * 500);
}

/* --- what a tool hears ---------------------------------------------------------------------------------------------- */

#define CALL_LAUNCH 307

static struct {
	atomic_uint begins, ends; /* of launches */
	atomic_uint others;
} heard;

static void hear(void *user, int domain, int id, const void *parameters)
{
	bool is_end = ((const uint64_t *)parameters)[10] >> 32 != 0;

	(void)user;
	if (domain == API)
		atomic_fetch_add(id != CALL_LAUNCH ? &heard.others : is_end ? &heard.ends : &heard.begins, 1);
}

static void launch_into(CUstream stream)
{
	uint64_t cycles = 3000000;
	void *parameters[] = {&gpu.output, &cycles};

	gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

/* The first launch of a kernel: we ask for its name. And one that has to wait: we ask whether it is captured. */
static void launch_heard(void)
{
	CUstream stream;
	uint32_t tool;

	be_client((struct segment_quota)SOME);
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(((table_subscribe_with_name *)subscriber_table()[TABLE_SUBSCRIBE_WITH_NAME])(&tool, hear, NULL, "test"));
	gpu_check(((table_enable_domain *)subscriber_table()[TABLE_ENABLE_DOMAIN])(1, tool, API));
	for (unsigned int i = 0; i < TURNS; i++)
		launch_into(stream);
	gpu_check(((table_unsubscribe *)subscriber_table()[TABLE_UNSUBSCRIBE])(tool));
	assert_int_equal(atomic_load(&heard.begins), TURNS);
	assert_int_equal(atomic_load(&heard.ends), TURNS);
	assert_int_equal(atomic_load(&heard.others), 0);
	assert_true(timed_look().aside_us > 0);
}

/* --- threads that do not go on -------------------------------------------------------------------------------------- */

/* As a program does that cancels whatever a thread is in. */
static void launch_while_cancelled(void)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL); /* NOLINT(cert-pos47-c) */
	timed_launch(1);
	pthread_testcancel();
}

/* Nothing of it is in the way of the others: what it has launched ends, and is used. */
static void cancel(void)
{
	const struct segment_quota quota = {.run_us = 1000, .period_us = 200000};

	be_client_who_has_used_all(quota);
	uint64_t used = timed_look().present_us;

	hold(launch_while_cancelled);
	pthread_cancel(launcher.thread);
	assert_int_equal(pthread_join(launcher.thread, NULL), 0);
	assert_false(atomic_load(&launcher.has_launched));
	wait_until_used(used + 500);
	timed_launch(3);
	gpu_check(cuCtxSynchronize());
}

/* SIGALRM ends it otherwise. */
static void exit_while_held(void)
{
	hold_with_little();
	assert_int_equal(pthread_detach(launcher.thread), 0);
	alarm(PATIENCE_S / 2);
	exit(0);
}

/* The child has neither the held thread nor ours. */
static void fork_while_held(void)
{
	int status;

	hold_with_little();
	pid_t child = fork();

	if (child == 0)
		_exit(timed_has_thread() ? 1 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(timed_has_thread());
	assert_false(atomic_load(&launcher.has_launched));
	give((struct segment_quota)ALL);
	wait_until_launched();
}

/* --- graphs --------------------------------------------------------------------------------------------------------- */

#define NODES 20

static CUgraphExec capture(void)
{
	uint64_t cycles = 3000000;
	void *parameters[] = {&gpu.output, &cycles};
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (unsigned int i = 0; i < NODES; i++)
		gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphDestroy(graph));
	gpu_check(cuStreamDestroy_v2(stream));
	return exec;
}

/* What is captured is not held, as another launch is. */
static void capture_while_held(void)
{
	double begin;

	hold_with_little();
	begin = timed_now_s();
	gpu_check(cuGraphExecDestroy(capture()));
	assert_true(timed_now_s() - begin < PATIENCE_S);
	assert_false(atomic_load(&launcher.has_launched));
	give((struct segment_quota)ALL);
	wait_until_launched();
}

/* Twenty kernels of 1 to 2 ms go as one, though a period has room for a few; then their time is paid back. One by one they
 * would be held four times and more. */
static void launch_graph(void)
{
	const struct segment_quota quota = SOME;
	CUgraphExec exec;

	be_client(quota);
	exec = capture();
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
	wait_until_used(3 * quota.run_us);
	assert_true(timed_look().aside_us < 3 * quota.period_us);
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
	wait_until_used(2 * 3 * quota.run_us);
	assert_true(timed_look().aside_us > quota.period_us);
}

/* Nobody sees when its kernels have ended. */
static void launch_graph_with_body(void)
{
	uint64_t cycles = 0;
	void *kernel[] = {&gpu.output, &cycles};
	CUDA_KERNEL_NODE_PARAMS inside = {
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = kernel,
	};
	CUgraphNode node;
	CUgraph graph;
	CUgraphExec exec;

	be_client((struct segment_quota)SOME);
	if (!cuGraphConditionalHandleCreate || !cuGraphAddNode_v2)
		timed_leave_out("this driver has no conditional nodes");
	gpu_check(cuGraphCreate(&graph, 0));
	CUgraphNodeParams conditional = gpu_conditional_node(&gpu, graph, CU_GRAPH_COND_TYPE_IF, 1, 1);

	gpu_check(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &conditional));
	inside.func = gpu.where;
	gpu_check(cuGraphAddKernelNode_v2(&node, *conditional.conditional.phGraph_out, NULL, 0, &inside));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphLaunch(capture(), NULL));
	gpu_check(cuCtxSynchronize());
	timed_sleep_ms(50);
	timed_wait_for_state(SEGMENT_TIME_HELD);
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
	timed_wait_for_state(SEGMENT_TIME_UNSEEN);
}

/* --- a thread that stops in the middle of ours --------------------------------------------------------------------- */

static void stop_for_a_while(int number)
{
	(void)number;
	timed_sleep_ms(30); /* NOLINT(bugprone-signal-handler,cert-sig30-c) */
}

static void *launch_for_ever(void *data)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	for (;;)
		gpu_launch_empty(&gpu);
	return data;
}

/* Sooner or later it is stopped where others wait for it: they go on without, and that is counted. */
static void stop_in_the_middle(void)
{
	pthread_t threads[2];

	be_client((struct segment_quota)SOME);
	timed_give(&(struct segment_revision){.quota = ALL, .rank = {.priority = 51}});
	signal(SIGUSR1, stop_for_a_while);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_for_ever, NULL), 0);
	uint64_t bounded = timed_look().bounded;
	double end = timed_now_s() + 4 * PATIENCE_S;

	while (timed_look().bounded == bounded && timed_now_s() < end) {
		pthread_kill(threads[0], SIGUSR1);
		timed_sleep_ms(40);
	}
	assert_true(timed_look().bounded > bounded);
	_exit(0);
}

TIMED_TEST(test_stopped, timed_run_and_pass, stop_in_the_middle)
TIMED_TEST(test_goes_on, timed_run_and_pass, go_on)
TIMED_TEST(test_edits, timed_run_and_pass, follow_edits)
TIMED_TEST(test_another_quota, timed_run_and_pass, follow_another_quota)
TIMED_TEST(test_mps_is_lost, timed_run_and_pass, lose_mps)
TIMED_TEST(test_mps_comes_back, timed_run_and_pass, lose_mps_for_a_while)
TIMED_TEST(test_nonsense, timed_run_and_pass, obey_nonsense)
TIMED_TEST(test_looks, timed_run_and_pass, look_rarely)
TIMED_TEST(test_lifted, timed_run_and_pass, lift_quota)
TIMED_TEST(test_weight, timed_run_and_pass, have_a_weight)
TIMED_TEST(test_graph_with_body, timed_run_and_pass, launch_graph_with_body)
TIMED_TEST(test_other_calls, timed_run_and_pass, use_other_calls)
TIMED_TEST(test_mutex, timed_run_and_pass, share_mutex)
TIMED_TEST(test_signals, timed_run_and_pass, handle_signals)
/* The simulated driver allocates in a launch. */
static void test_launch_in_handler(void **state)
{
	(void)state;
	if (SANITIZED)
		gpu_skip("a sanitizer does not permit it");
	timed_run_and_pass(launch_in_handler);
}

TIMED_TEST(test_tool, timed_run_and_pass, launch_inside_of_launches)
TIMED_TEST(test_heard, timed_run_and_pass, launch_heard)

/* A sanitizer's own functions may not be cancelled anywhere. */
static void test_cancelled(void **state)
{
	(void)state;
	if (SANITIZED)
		gpu_skip("a sanitizer does not permit it");
	timed_run_and_pass(cancel);
}

TIMED_TEST(test_exit, timed_run_and_pass, exit_while_held)
TIMED_TEST(test_fork, timed_run_and_pass, fork_while_held)
TIMED_TEST(test_capture, timed_run_and_pass, capture_while_held)
TIMED_TEST(test_graph, timed_run_and_pass, launch_graph)

#define CLIENT(test) cmocka_unit_test_setup_teardown(test, client_set_up, client_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT(test_goes_on),
		CLIENT(test_edits),
		CLIENT(test_another_quota),
		CLIENT(test_mps_is_lost),
		CLIENT(test_mps_comes_back),
		CLIENT(test_nonsense),
		CLIENT(test_looks),
		CLIENT(test_stopped),
		CLIENT(test_lifted),
		CLIENT(test_weight),
		CLIENT(test_graph_with_body),
		CLIENT(test_other_calls),
		CLIENT(test_mutex),
		CLIENT(test_signals),
		CLIENT(test_launch_in_handler),
		CLIENT(test_tool),
		CLIENT(test_heard),
		CLIENT(test_cancelled),
		CLIENT(test_exit),
		CLIENT(test_fork),
		CLIENT(test_capture),
		CLIENT(test_graph),
	};

	live_alone();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
