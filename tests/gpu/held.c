/*
 * Launches of a client of MPS that are held back for its quota: nothing else waits for ever, whatever the held thread has or what
 * becomes of it. tests/gpu/held_beside.c has what is held back for other programs.
 *
 * A thread is held for ten seconds where it is not said otherwise: longer than any test waits.
 */
#include "../alone.h"
#include "../cases.h"
#include "base/proc.h"
#include "support/client.h"
#include "support/subscriber.h"
#include "support/timed.h"

#define LITTLE {.run_us = 1000, .period_us = 10000000}
#define SOME {.run_us = 5000, .period_us = 100000}
#define ALL {.run_us = 10000, .period_us = 10000}

static void give(struct segment_quota quota)
{
	const struct segment_revision revision = {.quota = quota};

	timed_give(&revision);
}

static void be_limited(struct segment_quota quota)
{
	timed_give_to_client(&(struct segment_revision){.quota = quota});
}

static void be_client(struct segment_quota quota)
{
	timed_open_gpu();
	be_limited(quota);
}

static void wait_until_used(uint64_t us)
{
	timed_wait_until(timed_look().present_us >= us);
}

/* By a kernel of some 15 ms: long beside what a period is counted in (state/group/budget.h). */
static void use(uint64_t us)
{
	timed_launch_into(NULL, 1, 30000000);
	gpu_check(cuCtxSynchronize());
	wait_until_used(us);
}

/* From here on, the next launch has to wait. */
static void be_client_who_has_used_all(struct segment_quota quota)
{
	be_client(quota);
	use(4 * quota.run_us);
}

/* --- threads that are held --------------------------------------------------------------------------------------- */

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

/* It sleeps, again and again as one looks: not each time, since it wakes to look itself. */
#define TIMES_ASLEEP 20

static void wait_until_held(void)
{
	unsigned int times = 0;

	timed_until (times == TIMES_ASLEEP) {
		int thread = atomic_load(&launcher.id);

		times += thread != 0 && sleeps(thread);
		timed_sleep_ms(1);
	}
	assert_false(atomic_load(&launcher.has_launched));
}

static void hold(void (*launches)(void))
{
	launcher.launches = launches;
	launcher.id = 0;
	launcher.has_launched = false;
	launcher.thread = thread_start(launch, NULL);
	wait_until_held();
}

static void wait_for_flag(const atomic_bool *flag)
{
	timed_wait_until(atomic_load(flag));
}

static void wait_until_launched(void)
{
	wait_for_flag(&launcher.has_launched);
	assert_int_equal(pthread_join(launcher.thread, NULL), 0);
	gpu_check(cuCtxSynchronize());
}

static void let_go(void)
{
	give((struct segment_quota)ALL);
	wait_until_launched();
}

static void hold_with_little(void)
{
	be_client_who_has_used_all((struct segment_quota)LITTLE);
	hold(launch_one);
}

/* --- holds end --------------------------------------------------------------------------------------------------- */

#define LAUNCHES 30

/* It always wants to run: so it has what comes in each period, but for the last one; a half of it is enough. If launches were
 * held for longer than until a period begins in which there is room, it would have less, always. */
static bool has_its_share(struct segment_quota quota)
{
	struct segment_time before = timed_look();
	double begin = timed_now_s();

	for (unsigned int i = 0; i < LAUNCHES; i++)
		timed_work(1);
	double periods = (timed_now_s() - begin) * 1e6 / quota.period_us;
	double present_us = (double)(timed_look().present_us - before.present_us);

	return timed_look().aside_us > before.aside_us && present_us > quota.run_us * (periods - 1) / 2 &&
	       present_us < quota.run_us * (periods + 1) * 3;
}

TIMED(goes_on)
{
	const struct segment_quota quota = {.run_us = 10000, .period_us = 200000};

	be_client(quota);
	timed_until (has_its_share(quota))
		;
}

/* A kernel may wait for the next one: there is something left of the quota, so that one goes before this one has ended. */
TIMED(one_in_flight_that_does_not_end)
{
	CUevent end;

	be_client((struct segment_quota){.run_us = 9000000, .period_us = 10000000});
	CUstream stream = gpu_new_stream();

	gpu_check(cuEventCreate(&end, 0));
	timed_launch_into(stream, 1, UINT64_C(8000000000)); /* some 4 s */
	gpu_check(cuEventRecord(end, stream));
	timed_launch_into(gpu_new_stream(), 1, 0);
	assert_int_equal(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	gpu_check(cuCtxSynchronize());
}

/* What is in flight spends all of it: then it is no matter of time any more when the one goes that waits for room in it. In the next
 * period it would. */
TIMED(spent_while_one_waits)
{
	const struct segment_quota quota = {.run_us = 50000, .period_us = 10000000};

	be_client(quota);
	timed_wait_until((uint64_t)(timed_now_s() * 1e6) % quota.period_us < quota.period_us / 2);
	timed_launch_into(NULL, 1, UINT64_C(600000000)); /* some 300 ms: longer than a launch waits for room */
	hold(launch_one);
	gpu_check(cuCtxSynchronize());
	wait_until_used(quota.run_us);
	wait_until_held();
	let_go();
}

static uint64_t period_of(struct segment_quota quota)
{
	return (uint64_t)(timed_now_s() * 1e6) / quota.period_us;
}

static void work_five_times(void)
{
	for (unsigned int i = 0; i < 5; i++)
		timed_work(1);
}

TIMED(raised_within_its_period)
{
	const struct segment_quota little = LITTLE, most = {.run_us = 9000000, .period_us = 10000000};

	be_client(little);
	timed_wait_until((uint64_t)(timed_now_s() * 1e6) % little.period_us < little.period_us / 2);
	uint64_t period = period_of(little);

	use(4 * little.run_us);
	hold(work_five_times);
	give(most);
	wait_until_launched();
	assert_int_equal(period_of(little), period);
}

/* --- what is in flight waits for the launch ------------------------------------------------------------------------ */

#define THIRD {.run_us = 30000, .period_us = 100000}
#define LONG UINT64_C(20000000000) /* some 10 s */

static CUevent waiter_end;

/* In a stream of its own, with or without a launch's attributes, in cycles; then the quota is spent. */
static void wait_for_the_next_launch(CUlaunchAttribute *attributes, unsigned int count, uint64_t cycles)
{
	void *parameters[] = {&gpu.output, &cycles};
	CUlaunchConfig config = gpu_config(1, 32, gpu_new_stream());
	uint64_t used = timed_look().present_us;

	config.attrs = attributes;
	config.numAttrs = count;
	gpu_check(cuEventCreate(&waiter_end, 0));
	gpu_check(cuLaunchKernelEx(&config, gpu.where, parameters, NULL));
	gpu_check(cuEventRecord(waiter_end, config.hStream));
	wait_until_used(used + 60000);
}

static void assert_it_still_waits(void)
{
	assert_int_equal(cuEventQuery(waiter_end), CUDA_ERROR_NOT_READY);
}

/* Nobody says that it waits: it is charged for ever, and no longer than a debt lasts the next launch is held. */
TIMED(what_is_in_flight_waits_unseen)
{
	be_client((struct segment_quota)THIRD);
	wait_for_the_next_launch(NULL, 0, LONG);
	hold(launch_one);
	wait_for_flag(&launcher.has_launched);
	assert_int_equal(pthread_join(launcher.thread, NULL), 0);
	assert_it_still_waits();
	_exit(0);
}

/* A launch into a second stream goes at once. A hold would end with the period, and so after the kernel. */
static void assert_goes_beside(CUlaunchAttribute *attribute)
{
	be_client((struct segment_quota)LITTLE);
	wait_for_the_next_launch(attribute, 1, LONG / 2);
	timed_launch_into(gpu_new_stream(), 1, 0);
	assert_it_still_waits();
	assert_int_equal(timed_look().held, 0);
	timed_wait_for_state(SEGMENT_TIME_WEAK);
	_exit(0);
}

static CUlaunchAttribute at_once = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};

TIMED(blocks_that_run_at_once)
{
	assert_goes_beside(&at_once);
}

/* It is not waited for any more when it has ended. */
TIMED(blocks_that_ran_at_once)
{
	be_client((struct segment_quota)LITTLE);
	wait_for_the_next_launch(&at_once, 1, LONG / 100);
	gpu_check(cuCtxSynchronize());
	hold(launch_one);
	let_go();
}

TIMED(communication_with_other_gpus)
{
	assert_goes_beside(&(CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
	                                        .value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE});
}

/* What the driver refuses is not in flight: nobody waits for it. */
TIMED(refused_by_the_driver)
{
	be_client((struct segment_quota){.run_us = 9000000, .period_us = 10000000});
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_not_equal(cuLaunchKernel(gpu.where, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
		timed_work(1);
	}
	assert_int_equal(timed_look().held, 0);
}

/* Such a launch itself is charged, and not held. */
TIMED(the_one_that_is_waited_for)
{
	be_client_who_has_used_all((struct segment_quota)LITTLE);
	uint64_t held = timed_look().held;

	wait_for_the_next_launch(&at_once, 1, LONG / 100);
	gpu_check(cuCtxSynchronize());
	assert_int_equal(timed_look().held, held);
}

/* Each launch lies in forty periods. By the program's own clock: a launching call returns as the launch goes. */
static double share_of_long_launches(void)
{
	double begin, used = 0;

	timed_launch_into(NULL, 1, 400000000); /* some 200 ms */
	begin = timed_now_s();
	for (unsigned int i = 0; i < 4; i++) {
		double went = timed_now_s();

		gpu_check(cuCtxSynchronize());
		used += timed_now_s() - went;
		timed_launch_into(NULL, 1, 400000000);
	}
	double share = used / (timed_now_s() - begin);

	gpu_check(cuCtxSynchronize());
	return share;
}

TIMED(launches_longer_than_periods)
{
	be_client((struct segment_quota){.run_us = 1000, .period_us = 5000});
	double share = share_of_long_launches();

	timed_until (share > 0.19 && share < 0.21)
		share = share_of_long_launches();
}

/* --- what is charged ----------------------------------------------------------------------------------------------- */

/* What a launch is charged now and then, in us, in the mean. */
static uint64_t charged_for_each(void)
{
	uint64_t before = timed_look().present_us;

	for (unsigned int i = 0; i < LAUNCHES; i++) {
		timed_launch_into(NULL, 1, UINT64_C(800000)); /* some 400 us */
		gpu_check(cuCtxSynchronize());
		timed_sleep_ms(12);
	}
	return (timed_look().present_us - before) / LAUNCHES;
}

static bool charges(uint64_t least_us, uint64_t most_us)
{
	uint64_t us = charged_for_each();

	return us > least_us && us < most_us;
}

static void be_client_of_slow_driver(const char *fault)
{
	setenv("SIM_FAULTS", fault, 1);
	be_client((struct segment_quota){.run_us = 9000000, .period_us = 10000000});
}

/* Our thread is rung before, and looks again later, when the kernel has ended. It had looked 5 ms before at most: that is not charged. */
TIMED(counted_late)
{
	be_client_of_slow_driver("slow-launches");
	timed_until (charges(200, 1000))
		;
}

/* What the driver does before is not on the GPU. */
TIMED(loaded_slowly)
{
	be_client_of_slow_driver("slow-loads");
	timed_until (charges(200, 6000))
		;
}

/* Its pipe could not be seen for a while: who was held goes on. */
TIMED(mps_comes_back)
{
	hold_with_little();
	client_lose_mps();
	wait_until_launched();
	timed_wait_for_state(SEGMENT_TIME_MPS_GONE);
	timed_work(3);
	assert_int_equal(client_find_mps(), 0);
	timed_wait_for_state(SEGMENT_TIME_HELD);
	hold(launch_one);
	let_go();
	timed_wait_until(!timed_has_thread());
}

/* What the command gives nobody, whoever has written it. */
TIMED(nonsense)
{
	be_client((struct segment_quota){.run_us = 0, .period_us = UINT32_MAX});
	use(4 * SEGMENT_QUOTA_RUN_MIN_US);
	hold(launch_one);
	give((struct segment_quota){.run_us = 0, .period_us = 1});
	wait_until_launched();
	timed_work(3);
}

static atomic_bool goes_on, is_limited_again;

static void launch_again(void)
{
	launch_one();
	atomic_store(&goes_on, true);
	wait_for_flag(&is_limited_again);
	launch_one();
}

/* The gate ends to listen in the middle of a call, and listens anew. */
TIMED(limited_again)
{
	const struct segment_quota little = LITTLE;

	be_client_who_has_used_all(little);
	hold(launch_again);
	give((struct segment_quota)ALL);
	wait_for_flag(&goes_on);
	gpu_check(cuCtxSynchronize());
	timed_sleep_ms(20);
	be_limited(little);
	use(8 * little.run_us);
	atomic_store(&is_limited_again, true);
	wait_until_held();
	let_go();
}

/* Others do not wait for a held thread that has nothing of theirs. */
TIMED(other_calls)
{
	CUdeviceptr memory;

	hold_with_little();
	gpu_check(cuMemAlloc_v2(&memory, 4096));
	gpu_check(cuMemsetD32_v2(memory, 1, 1024));
	CUstream stream = gpu_new_stream();

	gpu_check(cuStreamSynchronize(stream));
	gpu_check(cuStreamDestroy_v2(stream));
	gpu_check(cuMemFree_v2(memory));
	assert_false(atomic_load(&launcher.has_launched));
	let_go();
}

/* The simulated driver allocates in a launch, and a sanitizer's own functions may not be cancelled anywhere. */
static void run_unless_sanitized(void (*body)(void))
{
	if (SANITIZED)
		gpu_skip("a sanitizer does not permit it");
	timed_run_and_pass(body);
}

static atomic_bool is_in_handler, is_handled;

static void note_signal(int number)
{
	atomic_store(&is_handled, true);
}

/* Not what a program should do. */
static void launch_on_signal(int number)
{
	atomic_store(&is_in_handler, true);
	timed_launch(1); /* NOLINT(bugprone-signal-handler,cert-sig30-c) */
	atomic_store(&is_handled, true);
}

/* The call goes on when the handler has returned: no launch fails because of a signal. */
TIMED(signals)
{
	signal(SIGUSR1, note_signal);
	hold_with_little();
	pthread_kill(launcher.thread, SIGUSR1);
	wait_for_flag(&is_handled);
	wait_until_held();
	let_go();
}

/* Both are held, and both go on. */
TIMED_BY(run_unless_sanitized, launch_in_handler)
{
	signal(SIGUSR1, launch_on_signal);
	hold_with_little();
	pthread_kill(launcher.thread, SIGUSR1);
	wait_for_flag(&is_in_handler);
	wait_until_held();
	assert_false(atomic_load(&is_handled));
	let_go();
	assert_true(atomic_load(&is_handled));
}

/* --- tools ------------------------------------------------------------------------------------------------------- */

#define CALL_LAUNCH 307
#define TURNS 10

static struct {
	atomic_uint begins, ends; /* of launches */
	atomic_uint others;
} heard;

static void hear(void *user, int domain, int id, const void *parameters)
{
	bool is_end = ((const uint64_t *)parameters)[10] >> 32 != 0;

	if (domain == API)
		atomic_fetch_add(id != CALL_LAUNCH ? &heard.others : is_end ? &heard.ends : &heard.begins, 1);
}

/* The first launch of a kernel: we ask for its name. And one that has to wait: we ask whether it is captured. */
TIMED(heard)
{
	uint32_t tool;

	be_client((struct segment_quota)SOME);
	CUstream stream = gpu_new_stream();

	gpu_check(tool_subscribe_with_name(&tool, hear, NULL, "test"));
	gpu_check(tool_enable_domain(1, tool, API));
	for (unsigned int i = 0; i < TURNS; i++)
		timed_launch_into(stream, 1, 3000000);
	gpu_check(tool_unsubscribe(tool));
	assert_int_equal(atomic_load(&heard.begins), TURNS);
	assert_int_equal(atomic_load(&heard.ends), TURNS);
	assert_int_equal(atomic_load(&heard.others), 0);
	timed_wait_until(timed_look().aside_us > 0);
}

static void launch_in_callback(void *user, int domain, int id, const void *parameters)
{
	if (domain == RESOURCES && !atomic_exchange(&is_handled, true))
		timed_launch(30); /* our thread may look late */
}

/* The driver may hold its locks there. */
TIMED(launch_in_callback)
{
	CUcontext context;
	uint32_t tool;

	be_client_who_has_used_all((struct segment_quota)LITTLE);
	gpu_check(tool_subscribe_with_name(&tool, launch_in_callback, NULL, "test"));
	gpu_check(tool_enable_domain(1, tool, RESOURCES));
	const struct segment_time before = timed_look();

	gpu_check(cuCtxCreate_v2(&context, 0, gpu.device));
	assert_true(atomic_load(&is_handled));
	wait_until_used(before.present_us + 500);
	assert_int_equal(timed_look().held, before.held);
	gpu_check(tool_unsubscribe(tool));
	hold(launch_one);
	let_go();
}

/* --- threads that do not go on ----------------------------------------------------------------------------------- */

/* As a program does that cancels whatever a thread is in. */
static void launch_while_cancelled(void)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL); /* NOLINT(cert-pos47-c) */
	timed_launch(1);
	pthread_testcancel();
}

/* Nothing of it is in the way of the others: what it has launched ends, and is used. */
TIMED_BY(run_unless_sanitized, cancelled)
{
	be_client_who_has_used_all((struct segment_quota)LITTLE);
	hold(launch_while_cancelled);
	uint64_t used = timed_look().present_us;

	pthread_cancel(launcher.thread);
	give((struct segment_quota){.run_us = 9000, .period_us = 10000});
	assert_int_equal(pthread_join(launcher.thread, NULL), 0);
	assert_false(atomic_load(&launcher.has_launched));
	wait_until_used(used + 500);
	timed_work(3);
}

/* SIGALRM ends it otherwise. */
TIMED(exit)
{
	hold_with_little();
	assert_int_equal(pthread_detach(launcher.thread), 0);
	alarm(9); /* before its period ends */
	exit(0);
}

/* The child has neither the held thread nor ours. */
TIMED(fork)
{
	hold_with_little();
	pid_t child = fork();

	if (child == 0)
		exit(timed_has_thread() ? 1 : 0);
	assert_ends_well(child);
	assert_true(timed_has_thread());
	assert_false(atomic_load(&launcher.has_launched));
	let_go();
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

#define NODES 20

static CUgraphExec capture(unsigned int kernels, uint64_t cycles, CUdeviceptr output)
{
	void *parameters[] = {&output, &cycles};
	CUstream stream = gpu_new_stream();
	CUgraphExec exec;
	CUgraph graph;

	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (unsigned int i = 0; i < kernels; i++)
		gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphDestroy(graph));
	gpu_check(cuStreamDestroy_v2(stream));
	return exec;
}

static CUgraphExec capture_long(void)
{
	return capture(NODES, 3000000, gpu.output);
}

/* As NCCL in a graph. */
TIMED(graph_that_waits)
{
	uint64_t cycles = LONG / 2;
	void *parameters[] = {&gpu.output, &cycles};
	CUgraphExec exec;
	CUgraph graph;

	be_client_who_has_used_all((struct segment_quota)LITTLE);
	CUstream stream = gpu_new_stream();

	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	gpu_check(cuLaunchCooperativeKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuEventCreate(&waiter_end, 0));
	gpu_check(cuGraphLaunch(exec, stream));
	gpu_check(cuEventRecord(waiter_end, stream));
	timed_launch_into(gpu_new_stream(), 1, 0);
	assert_it_still_waits();
	assert_int_equal(timed_look().held, 0);
	_exit(0);
}

/* What is captured is not held, as another launch is. */
TIMED(capture)
{
	hold_with_little();
	gpu_check(cuGraphExecDestroy(capture_long()));
	give((struct segment_quota){.run_us = 9000, .period_us = 10000});
	wait_until_launched();
	timed_wait_until(timed_look().held > 0);
	assert_int_equal(timed_look().held, 1);
}

/* Twenty kernels of 1 to 2 ms go as one, though a period has room for a few; then their time is paid back. One by one they
 * would be held four times and more. */
TIMED(graph)
{
	const struct segment_quota quota = SOME;
	CUgraphExec exec;
	unsigned int launches = 0;

	be_client(quota);
	exec = capture_long();
	timed_until (timed_look().aside_us > quota.period_us) {
		gpu_check(cuGraphLaunch(exec, NULL));
		gpu_check(cuCtxSynchronize());
		wait_until_used(++launches * 3 * quota.run_us);
	}
	assert_true(timed_look().held <= launches);
}

/* Nobody sees when its kernels have ended. */
TIMED(graph_with_body)
{
	uint64_t cycles = 0;
	void *arguments[] = {&gpu.output, &cycles};
	CUgraphExec exec;

	be_client((struct segment_quota)SOME);
	if (!cuGraphConditionalHandleCreate || !cuGraphAddNode_v2)
		timed_leave_out("this driver has no conditional nodes");
	const CUDA_KERNEL_NODE_PARAMS inside = gpu_where_node(&gpu, arguments);

	gpu_check(cuGraphInstantiateWithFlags(&exec, gpu_conditional_graph(&gpu, &inside), 0));
	gpu_check(cuGraphLaunch(capture_long(), NULL));
	gpu_check(cuCtxSynchronize());
	timed_sleep_ms(50);
	timed_wait_for_state(SEGMENT_TIME_HELD);
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
	timed_wait_for_state(SEGMENT_TIME_UNSEEN);
}

/* --- threads that launch while rules come and go ----------------------------------------------------------------- */

#define THREADS 3
#define EDITS 150

static atomic_bool is_over;

static void *launch_again_and_again(void *unused)
{
	uint64_t cycles = 0;
	CUdeviceptr output;
	void *parameters[] = {&output, &cycles};

	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuMemAlloc_v2(&output, 4096));
	CUstream stream = gpu_new_stream();

	while (!atomic_load(&is_over)) {
		CUgraphExec exec = capture(2, 0, output);

		for (unsigned int i = 0; i < 10; i++) {
			gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
			gpu_check(cuGraphLaunch(exec, stream));
		}
		gpu_check(cuStreamSynchronize(stream));
		gpu_check(cuGraphExecDestroy(exec));
	}
	return NULL;
}

/* Whatever is given and taken away meanwhile, all of them go on and end. */
TIMED(changes)
{
	const struct segment_revision rules[] = {
		{.quota = SOME},
		{.quota = {.run_us = 1000, .period_us = 1000}},
		{.quota = {.run_us = 1000, .period_us = 1000}, .rank = {.priority = 21}},
		{.quota = {.run_us = 1000, .period_us = 2000}, .rank = {.priority = 81}},
	};
	pthread_t threads[THREADS];

	timed_open_gpu();
	for (unsigned int i = 0; i < THREADS; i++)
		threads[i] = thread_start(launch_again_and_again, NULL);
	for (unsigned int i = 0; i < EDITS; i++) {
		timed_give(&rules[i % COUNT_OF(rules)]);
		timed_sleep_ms(i % 7);
	}
	atomic_store(&is_over, true);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	gpu_check(cuCtxSynchronize());
}

RUN_TESTS_ALONE(NULL, NULL, client_set_up, client_tear_down)
