/*
 * Clients of MPS that were given something in time: their launches are held back at the entry of the call.
 */
#include "../alone.h"
#include "state/predictions.h"
#include "state/segment.h"
#include "support/client.h"
#include "support/first_gpu.h"
#include "support/timed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- a quota -------------------------------------------------------------------------------------------------------------- */

static const struct segment_revision tenth = {.quota = {.run_us = 10000, .period_us = 100000}};

static void give_to_client(const struct segment_revision *wanted)
{
	timed_open_gpu();
	timed_give(wanted);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_HELD);
	gpu_launch_empty(&gpu);
}

/* Kernels of 1 to 2 ms: each tenth of a second has room for some ten. */
static void stay_within_quota(void)
{
	give_to_client(&tenth);
	double begin = timed_now_s();
	unsigned int kernels = 0;

	while (timed_now_s() - begin < 1) {
		timed_launch(1);
		gpu_check(cuCtxSynchronize());
		kernels++;
	}
	struct segment_time time = timed_look();

	/* Without a quota there would be more than 500. */
	assert_in_range(kernels, 1, 300);
	assert_in_range(time.present_us, 1, 300000);
	assert_true(time.aside_us > 0);
}

TIMED_TEST(test_quota, timed_run_and_pass, stay_within_quota)

/* --- threads that launch while rules come and go --------------------------------------------------------------------------- */

#define THREADS 3
#define EDITS 150

static atomic_bool is_over;

/* A graph of two kernels, captured while others are held. */
static CUgraphExec capture(CUstream stream, CUdeviceptr output)
{
	uint64_t cycles = 0;
	void *parameters[] = {&output, &cycles};
	CUgraph graph;
	CUgraphExec exec;

	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (unsigned int i = 0; i < 2; i++)
		gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	gpu_check(cuGraphDestroy(graph));
	return exec;
}

static void *launch_again_and_again(void *unused)
{
	uint64_t cycles = 0;
	CUdeviceptr output;
	void *parameters[] = {&output, &cycles};
	CUstream stream;

	(void)unused;
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuMemAlloc_v2(&output, 4096));
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	while (!atomic_load(&is_over)) {
		CUgraphExec exec = capture(stream, output);

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
static void change_rules(void)
{
	const struct segment_revision rules[] = {
		tenth,
		{.quota = {.run_us = 1000, .period_us = 1000}},
		{.quota = {.run_us = 1000, .period_us = 1000}, .rank = {.priority = 21}},
		{.quota = {.run_us = 1000, .period_us = 2000}, .rank = {.priority = 81}},
	};
	pthread_t threads[THREADS];

	timed_open_gpu();
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_again_and_again, NULL), 0);
	for (unsigned int i = 0; i < EDITS; i++) {
		timed_give(&rules[i % (sizeof rules / sizeof rules[0])]);
		timed_sleep_ms(i % 7);
	}
	atomic_store(&is_over, true);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	gpu_check(cuCtxSynchronize());
}

TIMED_TEST(test_changes, timed_run_and_pass, change_rules)

/* --- predictions ---------------------------------------------------------------------------------------------------------- */

static const struct segment_revision most = {.quota = {.run_us = 95000, .period_us = 100000}};

static CUgraphExec make_graph(void)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	uint64_t cycles = 500000;
	void *parameters[] = {&gpu.output, &cycles};

	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	for (unsigned int i = 0; i < 5; i++)
		gpu_check(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
	gpu_check(cuStreamEndCapture(stream, &graph));
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

/* Of the kernel, or the graph, that was launched most often; nothing if there is none. */
static struct prediction_quality quality_of(bool is_graph)
{
	struct segment segment = gpu_own_segment();
	struct prediction_quality quality = {.known = 0};
	struct predictions said = {.count = 0};

	if (predictions_read(&segment, &said)) {
		for (unsigned int i = said.count; i > 0; i--)
			quality = said.list[i - 1].is_graph == is_graph ? said.list[i - 1].quality : quality;
	}
	segment_close(&segment);
	return quality;
}

/* What was predicted of kernels and graphs, and what came, is said. The first one of each is unknown, and how long those
 * took that ended before the clocks were compared. */
static void predict_launches(void)
{
	double end = timed_now_s() + PATIENCE_S;
	unsigned int launches = 0;

	give_to_client(&most);
	CUgraphExec exec = make_graph();

	while ((quality_of(false).known < 20 || quality_of(true).known < 20) && timed_now_s() < end) {
		timed_launch(1);
		gpu_check(cuCtxSynchronize());
		gpu_check(cuGraphLaunch(exec, NULL));
		gpu_check(cuCtxSynchronize());
		launches++;
	}
	struct prediction_quality kernel = quality_of(false), graph = quality_of(true);

	assert_in_range(kernel.known, 20, launches);
	assert_in_range(graph.known, 20, launches);
	assert_true(kernel.unknown > 0 && graph.unknown > 0);
	assert_true(kernel.predicted_ns > 0 && kernel.came_ns > 0 && graph.predicted_ns > 0 && graph.came_ns > 0);
	/* The errors in one direction are not larger than all of them. */
	assert_true(kernel.predicted_ns <= kernel.came_ns + kernel.error_ns);
	assert_true(kernel.came_ns <= kernel.predicted_ns + kernel.error_ns);
}

TIMED_TEST(test_predictions, timed_run_and_pass, predict_launches)

/* --- policies ------------------------------------------------------------------------------------------------------------ */

/* Some 100 ms. */
static void run_long(void)
{
	uint64_t cycles = 170000000;
	void *parameters[] = {&gpu.output, &cycles};

	gpu_check(cuLaunchKernel(gpu.where, 2, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
	gpu_check(cuCtxSynchronize());
}

/* Runs one, and waits until it is known how long it took: of the first ones, it never is. */
static bool run_one(double patience_s)
{
	uint64_t known = quality_of(false).known;
	double end;

	run_long();
	end = timed_now_s() + patience_s;
	while (quality_of(false).known == known && timed_now_s() < end)
		timed_sleep_ms(1);
	return quality_of(false).known > known;
}

static void run_until_known(void)
{
	double end = timed_now_s() + PATIENCE_S;
	bool is_known = false;

	while (!is_known && timed_now_s() < end)
		is_known = run_one(0.5);
	assert_true(is_known);
}

static void give_and_wait(const struct segment_revision *wanted)
{
	struct segment segment = gpu_own_segment();
	double end = timed_now_s() + PATIENCE_S;

	timed_give(wanted);
	while (timed_look().number < segment_revision_number(&segment) && timed_now_s() < end)
		timed_sleep_ms(1);
	segment_close(&segment);
}

static const struct segment_revision nearly_all = {.quota = {.run_us = 9990000, .period_us = 10000000}};

/* Two kernels, in a period that has room for one and a half. Whether one of them waited for longer than a kernel takes. */
static bool has_one_of_two_waited(enum segment_reservation reservation)
{
	give_and_wait(&nearly_all);
	run_until_known();
	struct prediction_quality quality = quality_of(false);
	uint64_t known = quality.known > 0 ? quality.known : 1;
	uint32_t us = (uint32_t)(quality.came_ns / known / 1000);
	const struct segment_revision wanted = {.quota = {.run_us = us + us / 2, .period_us = 20 * us},
	                                        .rank.reservation = (uint16_t)reservation};

	give_and_wait(&wanted);
	uint64_t waited_us = timed_look().aside_us;

	assert_true(run_one(PATIENCE_S) && run_one(PATIENCE_S));
	return timed_look().aside_us - waited_us > us;
}

#define ATTEMPTS 5

/* Posterior: the second one overruns, unless the first one took half as long again, as on a busy machine. */
static void overrun(void)
{
	bool has_waited = true;

	give_to_client(&nearly_all);
	for (int i = 0; has_waited && i < ATTEMPTS; i++)
		has_waited = has_one_of_two_waited(SEGMENT_PE);
	assert_false(has_waited);
}

/* Apriori: it waits for the next period. */
static void wait_for_room(void)
{
	give_to_client(&nearly_all);
	assert_true(has_one_of_two_waited(SEGMENT_AE));
}

/* The first launch of all is taken to use all that there is. Those that come meanwhile need not wait for the next period once it
 * is known how long it was. */
static void learn_while_waiting(void)
{
	const struct segment_revision wanted = {.quota = {.run_us = 9990000, .period_us = 10000000},
	                                        .rank.reservation = SEGMENT_AE};

	alarm(PATIENCE_S);
	give_to_client(&wanted);
	timed_launch(5);
	gpu_check(cuCtxSynchronize());
}

TIMED_TEST(test_posterior, timed_run_and_pass, overrun)
TIMED_TEST(test_apriori, timed_run_and_pass, wait_for_room)
TIMED_TEST(test_unknown, timed_run_and_pass, learn_while_waiting)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_quota, client_set_up, client_tear_down),
		cmocka_unit_test_setup_teardown(test_changes, client_set_up, client_tear_down),
		cmocka_unit_test_setup_teardown(test_predictions, client_set_up, client_tear_down),
		cmocka_unit_test_setup_teardown(test_posterior, client_set_up, client_tear_down),
		cmocka_unit_test_setup_teardown(test_apriori, client_set_up, client_tear_down),
		cmocka_unit_test_setup_teardown(test_unknown, client_set_up, client_tear_down),
	};

	live_alone();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
