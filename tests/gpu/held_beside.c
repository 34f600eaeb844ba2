/*
 * Clients of MPS with priorities that share a GPU: launches of a lower one are held back, and nobody waits for ever, whatever the
 * held thread has and whatever becomes of the higher one. tests/gpu/held.c has what is held back for a quota.
 *
 * Each program is a process of its own.
 */
#include "../alone.h"
#include "state/segment.h"
#include "support/client.h"
#include "support/first_gpu.h"
#include "support/pair.h"
#include "support/timed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define HIGH 80
#define LOW 20

/* --- the programs --------------------------------------------------------------------------------------------------- */

static unsigned int self; /* which of them this is */

static void be_client(unsigned int number, unsigned int priority)
{
	const struct segment_revision revision = {.rank = {.priority = (uint16_t)(priority + 1)}};

	self = number;
	timed_open_gpu();
	timed_give(&revision);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_HELD);
}

static void be_high(void)
{
	be_client(0, HIGH);
	pair_work(self, 1);
}

static void be_low(void)
{
	be_client(1, LOW);
	pair_work(self, 1);
}

/* --- the lower one's threads: all of them need the same lock for a launch ------------------------------------------- */

#define THREADS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *work_with_lock(void *data)
{
	atomic_uint *launches = data;

	gpu_check(cuCtxSetCurrent(gpu.context));
	while (!atomic_load(&pair->ends)) {
		pthread_mutex_lock(&mutex);
		timed_launch(1);
		pthread_mutex_unlock(&mutex);
		gpu_check(cuCtxSynchronize());
		atomic_fetch_add(launches, 1);
		pair_note(self, 1);
	}
	return NULL;
}

/* Each of them gets on: the one that waits takes the lock in between. */
static void be_low_with_threads(void)
{
	static atomic_uint launches[THREADS];
	pthread_t threads[THREADS];

	be_client(1, LOW);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work_with_lock, &launches[i]), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_true(atomic_load(&launches[i]) > 0);
	}
}

/* --- their parent --------------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	return pair_set_up(state) < 0 ? -1 : client_set_up(state);
}

static int tear_down(void **state)
{
	pair_tear_down(state);
	return client_tear_down(state);
}

/* More than bounds alone would let go while a test waits. */
#define FREELY (PATIENCE_S * 10 * 3)

static void run_low_beside_high(void (*low)(void))
{
	pair_start(0, be_high);
	pair_start(1, low);
	pair_wait_for_aside(1, 200000);
}

/* --- nobody waits for ever ------------------------------------------------------------------------------------------ */

/* Neither the higher one, which is never held, nor the lower one, though the higher one has work all the time. */
static void test_both_go_on(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	uint64_t bounded = pair_time_of(1).bounded;

	pair_wait_for_done(0, 100);
	pair_wait_for_done(1, 5);
	assert_true(pair_time_of(1).bounded > bounded);
	assert_int_equal(pair_time_of(0).aside_us, 0);
	pair_finish(0);
	pair_finish(1);
}

static void test_lock(void **state)
{
	(void)state;
	run_low_beside_high(be_low_with_threads);
	pair_wait_for_done(1, 4 * THREADS);
	pair_finish(0);
	pair_finish(1);
}

static void test_pause(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	atomic_store(&pair->pauses, true);
	pair_wait_for_done(1, FREELY);
	atomic_store(&pair->pauses, false);
	pair_wait_for_aside(1, 200000);
	pair_finish(0);
	pair_finish(1);
}

/* --- those that do not go on ---------------------------------------------------------------------------------------- */

static void test_killed(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	kill(pair_children[0].pid, SIGKILL);
	pair_wait_for(0);
	pair_wait_for_done(1, FREELY);
	pair_finish(1);
}

/* A simulated GPU goes on giving time slices to who is stopped; but nobody is held for it, also before it is known to be gone. */
static void test_stopped(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	kill(pair_children[0].pid, SIGSTOP);
	uint64_t bounded = pair_time_of(1).bounded;

	pair_wait_for_done(1, FREELY);
	assert_true(pair_time_of(1).bounded < bounded + 10);
	kill(pair_children[0].pid, SIGCONT);
	pair_wait_for_aside(1, 200000);
	pair_finish(0);
	pair_finish(1);
}

static void test_lower_one_stopped(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	kill(pair_children[1].pid, SIGSTOP);
	pair_wait_for_done(0, 100);
	kill(pair_children[1].pid, SIGCONT);
	pair_wait_for_aside(1, 200000);
	pair_finish(0);
	pair_finish(1);
}

/* In the middle of a hold. */
static void test_lower_one_killed(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	kill(pair_children[1].pid, SIGKILL);
	pair_wait_for(1);
	pair_wait_for_done(0, 100);
	pair_finish(0);
}

static void *hold_for_ever(void *data)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	for (;;) {
		timed_launch(1);
		gpu_check(cuCtxSynchronize());
		pair_note(self, 1);
	}
	return data;
}

/* A thread is held nearly all the time. */
static void exit_while_held(void)
{
	double end = timed_now_s() + PATIENCE_S;
	pthread_t thread;

	be_client(1, LOW);
	assert_int_equal(pthread_create(&thread, NULL, hold_for_ever, NULL), 0);
	while (timed_look().aside_us < 200000 && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(timed_look().aside_us >= 200000);
	alarm(PATIENCE_S);
	_exit(0);
}

static void test_exit(void **state)
{
	(void)state;
	pair_start(0, be_high);
	pair_start(1, exit_while_held);
	struct child_end end = pair_wait_for(1);

	child_assert_passed(&end);
	pair_wait_for_done(0, 100);
	pair_finish(0);
}

static void test_mps_is_lost(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	client_lose_mps();
	pair_wait_for_done(1, FREELY);
	pair_finish(0);
	pair_finish(1);
}

#define BESIDE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BESIDE(test_both_go_on),
		BESIDE(test_lock),
		BESIDE(test_pause),
		BESIDE(test_killed),
		BESIDE(test_stopped),
		BESIDE(test_lower_one_stopped),
		BESIDE(test_lower_one_killed),
		BESIDE(test_exit),
		BESIDE(test_mps_is_lost),
	};

	live_alone();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
