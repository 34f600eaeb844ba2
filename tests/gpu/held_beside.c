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
#include "support/timed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIGH 80
#define LOW 20

#define PROGRAMS 2
static struct {
	atomic_bool ends, pauses; /* all; the first one */
	struct {
		atomic_bool is_ready;
		atomic_uint launches; /* that have returned */
	} programs[PROGRAMS];
} *shared;

static char path[] = "/tmp/nvtaskset-gpu-XXXXXX";
static struct child children[PROGRAMS];

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

static void note_launch(void)
{
	atomic_fetch_add(&shared->programs[self].launches, 1);
	atomic_store(&shared->programs[self].is_ready, true);
}

/* There is always some work in flight, but while it pauses. */
static void work(void)
{
	CUevent ends[2];

	for (unsigned int i = 0; i < 2; i++)
		gpu_check(cuEventCreate(&ends[i], 0));
	for (unsigned int i = 0; !atomic_load(&shared->ends); i ^= 1) {
		while (self == 0 && atomic_load(&shared->pauses) && !atomic_load(&shared->ends))
			timed_sleep_ms(1);
		timed_launch(1);
		gpu_check(cuEventRecord(ends[i], NULL));
		gpu_check(cuEventSynchronize(ends[i ^ 1]));
		note_launch();
	}
	gpu_check(cuCtxSynchronize());
}

static void be_high(void)
{
	be_client(0, HIGH);
	work();
}

static void be_low(void)
{
	be_client(1, LOW);
	work();
}

/* --- the lower one's threads: all of them need the same lock for a launch ------------------------------------------- */

#define THREADS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *work_with_lock(void *data)
{
	atomic_uint *launches = data;

	gpu_check(cuCtxSetCurrent(gpu.context));
	while (!atomic_load(&shared->ends)) {
		pthread_mutex_lock(&mutex);
		timed_launch(1);
		pthread_mutex_unlock(&mutex);
		gpu_check(cuCtxSynchronize());
		atomic_fetch_add(launches, 1);
		note_launch();
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
	snprintf(path, sizeof path, "/tmp/nvtaskset-gpu-XXXXXX");
	timed_share_gpu(path);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? -1 : client_set_up(state);
}

/* After a failure, children may be left. */
static int tear_down(void **state)
{
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		if (children[i].pid > 0) {
			kill(children[i].pid, SIGKILL);
			child_wait(&children[i]);
			children[i].pid = 0;
		}
	}
	munmap(shared, sizeof *shared);
	unsetenv("SIM_GPU");
	unlink(path);
	return client_tear_down(state);
}

static struct child_end wait_for(unsigned int number)
{
	struct child_end end = child_wait(&children[number]);

	children[number].pid = 0;
	return end;
}

/* Once it has launched. One that was left out or has failed ends the test. */
static void start(unsigned int number, void (*body)(void))
{
	double end = timed_now_s() + PATIENCE_S;

	children[number] = child_start(body);
	while (!atomic_load(&shared->programs[number].is_ready) && timed_now_s() < end) {
		siginfo_t info = {.si_pid = 0};

		waitid(P_PID, (id_t)children[number].pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (info.si_pid != 0) {
			struct child_end child = wait_for(number);

			atomic_store(&shared->ends, true);
			timed_skip_if_skipped(&child);
			child_assert_passed(&child);
		}
		timed_sleep_ms(1);
	}
	assert_true(atomic_load(&shared->programs[number].is_ready));
}

static void finish(unsigned int number)
{
	atomic_store(&shared->ends, true);
	struct child_end end = wait_for(number);

	child_assert_passed(&end);
}

static struct segment_time time_of(unsigned int number)
{
	struct segment segment;
	struct segment_time time;

	assert_int_equal(segment_open(&segment, children[number].pid, NULL), SEGMENT_FOUND);
	segment_read_time(&segment, &time);
	segment_close(&segment);
	return time;
}

/* Its launches have been held for so much longer. */
static void wait_until_held(unsigned int number, uint64_t more_us)
{
	double end = timed_now_s() + PATIENCE_S;
	uint64_t before = time_of(number).aside_us;

	while (time_of(number).aside_us < before + more_us && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(time_of(number).aside_us >= before + more_us);
}

static void wait_for_launches(unsigned int number, unsigned int more)
{
	double end = timed_now_s() + PATIENCE_S;
	unsigned int before = atomic_load(&shared->programs[number].launches);

	while (atomic_load(&shared->programs[number].launches) < before + more && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(atomic_load(&shared->programs[number].launches) >= before + more);
}

/* More than bounds alone would let go while a test waits. */
#define FREELY (PATIENCE_S * 10 * 3)

static void run_low_beside_high(void (*low)(void))
{
	start(0, be_high);
	start(1, low);
	wait_until_held(1, 200000);
}

/* --- nobody waits for ever ------------------------------------------------------------------------------------------ */

/* Neither the higher one, which is never held, nor the lower one, though the higher one has work all the time. */
static void test_both_go_on(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	uint64_t bounded = time_of(1).bounded;

	wait_for_launches(0, 100);
	wait_for_launches(1, 5);
	assert_true(time_of(1).bounded > bounded);
	assert_int_equal(time_of(0).aside_us, 0);
	finish(0);
	finish(1);
}

static void test_lock(void **state)
{
	(void)state;
	run_low_beside_high(be_low_with_threads);
	wait_for_launches(1, 4 * THREADS);
	finish(0);
	finish(1);
}

static void test_pause(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	atomic_store(&shared->pauses, true);
	wait_for_launches(1, FREELY);
	atomic_store(&shared->pauses, false);
	wait_until_held(1, 200000);
	finish(0);
	finish(1);
}

/* --- those that do not go on ---------------------------------------------------------------------------------------- */

static void test_killed(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	kill(children[0].pid, SIGKILL);
	wait_for(0);
	wait_for_launches(1, FREELY);
	finish(1);
}

/* A simulated GPU goes on giving time slices to who is stopped; but nobody is held for it, also before it is known to be gone. */
static void test_stopped(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	kill(children[0].pid, SIGSTOP);
	uint64_t bounded = time_of(1).bounded;

	wait_for_launches(1, FREELY);
	assert_true(time_of(1).bounded < bounded + 10);
	kill(children[0].pid, SIGCONT);
	wait_until_held(1, 200000);
	finish(0);
	finish(1);
}

static void test_lower_one_stopped(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	kill(children[1].pid, SIGSTOP);
	wait_for_launches(0, 100);
	kill(children[1].pid, SIGCONT);
	wait_until_held(1, 200000);
	finish(0);
	finish(1);
}

/* In the middle of a hold. */
static void test_lower_one_killed(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	kill(children[1].pid, SIGKILL);
	wait_for(1);
	wait_for_launches(0, 100);
	finish(0);
}

static void *hold_for_ever(void *data)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	for (;;) {
		timed_launch(1);
		gpu_check(cuCtxSynchronize());
		note_launch();
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
	start(0, be_high);
	start(1, exit_while_held);
	struct child_end end = wait_for(1);

	child_assert_passed(&end);
	wait_for_launches(0, 100);
	finish(0);
}

static void test_mps_is_lost(void **state)
{
	(void)state;
	run_low_beside_high(be_low);
	client_lose_mps();
	wait_for_launches(1, FREELY);
	finish(0);
	finish(1);
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
