/*
 * Clients of MPS with priorities that share a GPU: launches of a lower one are held back, and nobody waits for ever, whatever the
 * held thread has and whatever becomes of the higher one. tests/gpu/held.c has what is held back for a quota.
 *
 * Each program is a process of its own.
 */
#include "../alone.h"
#include "../cases.h"
#include "base/clock.h"
#include "state/board/board.h"
#include "state/segment/segment.h"
#include "support/client.h"
#include "support/pair.h"
#include "support/timed.h"

#define HIGH 80
#define LOW 20

/* --- the programs --------------------------------------------------------------------------------------------------- */

static unsigned int self; /* which of them this is */

static void be_client(unsigned int number, unsigned int priority)
{
	const struct segment_revision revision = {.rank = {.priority = (uint16_t)(priority + 1)}};

	self = number;
	timed_open_gpu();
	timed_give_to_client(&revision);
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
		threads[i] = thread_start(work_with_lock, &launches[i]);
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

static void run_low_beside_high(void (*low)(void))
{
	pair_start(0, be_high);
	pair_start(1, low);
	pair_wait_for_aside(1, 200000);
}

/* --- nobody waits for ever ------------------------------------------------------------------------------------------ */

/* Neither the higher one, which is never held, nor the lower one, though the higher one has work all the time. */
TEST(both_go_on)
{
	run_low_beside_high(be_low);
	uint64_t bounded = pair_time_of(1).bounded;

	pair_wait_for_done(0, 100);
	pair_wait_for_done(1, 5);
	timed_wait_until(pair_time_of(1).bounded > bounded);
	assert_int_equal(pair_time_of(0).aside_us, 0);
	pair_finish_both();
}

TEST(lock)
{
	run_low_beside_high(be_low_with_threads);
	pair_wait_for_done(1, 4 * THREADS);
	pair_finish_both();
}

/* It always has work in flight until the lower one has done something, again and again. */
static void be_high_that_waits(void)
{
	CUevent ends[2];

	be_client(0, HIGH);
	for (unsigned int i = 0; i < 2; i++)
		gpu_check(cuEventCreate(&ends[i], 0));
	for (pair_note(self, 1); !atomic_load(&pair->ends); pair_note(self, 1)) {
		unsigned int done = atomic_load(&pair->programs[1].done);

		for (unsigned int i = 0; atomic_load(&pair->programs[1].done) == done && !atomic_load(&pair->ends); i ^= 1) {
			timed_launch(1);
			gpu_check(cuEventRecord(ends[i], NULL));
			gpu_check(cuEventSynchronize(ends[i ^ 1]));
		}
	}
	gpu_check(cuCtxSynchronize());
}

TEST(waited_for)
{
	pair_start(0, be_high_that_waits);
	pair_start(1, be_low);
	pair_wait_for_done(0, 5);
	pair_finish_both();
}

/* Launches as fast as it can, and waits for nothing. */
static void be_low_that_hurries(void)
{
	be_client(1, LOW);
	for (pair_note(self, 1); !atomic_load(&pair->ends); pair_note(self, 1))
		timed_launch(1);
	gpu_check(cuCtxSynchronize());
}

/* Always, also where it is late by some 100 ms. */
static void be_high_with_much(void)
{
	be_client(0, HIGH);
	pair_work(self, 50);
}

static uint64_t bounds(void)
{
	return pair_time_of(1).bounded;
}

static uint64_t wait_for_bounds(uint64_t count)
{
	timed_wait_until(bounds() >= count);
	return bounds();
}

/* Over four episodes and more. What is said of them comes late: so they are four at least, and those from `before` to `after` at
 * most. Whether it can be judged: not if the higher one was idle, and more went meanwhile. */
static bool few_go_after_episodes(void)
{
	unsigned int idle = atomic_load(&pair->programs[0].idle);
	uint64_t before = bounds();
	unsigned int done = pair_done(1);

	wait_for_bounds(wait_for_bounds(before + 1) + 4);
	unsigned int went = pair_done(1) - done;
	uint64_t after = wait_for_bounds(bounds() + 1);

	pair_wait_for_done(0, 1); /* it has said so */
	if (atomic_load(&pair->programs[0].idle) != idle)
		return false;
	assert_in_range(went, 1, 6 * (after - before + 1));
	return true;
}

/* After each wait, a few go, one after the other: the higher one does not have to wait for what the lower one would have sent.
 * There may be few of them by chance: so it is judged three times. */
TEST(few_after_an_episode)
{
	unsigned int times = 0;

	pair_start(0, be_high_with_much);
	pair_start(1, be_low_that_hurries);
	pair_wait_for_aside(1, 200000);
	timed_until (times == 3)
		times += few_go_after_episodes();
	pair_finish_both();
}

/* Some 10 us each, and no more than one in flight. */
static void be_low_in_short(void)
{
	be_client(1, LOW);
	for (pair_note(self, 1); !atomic_load(&pair->ends); pair_note(self, 1)) {
		timed_launch_into(NULL, 1, 20000);
		gpu_check(cuCtxSynchronize());
	}
}

#define SHORT_ONES 10 /* and far more on a machine that is not busy */

/* Not where the higher one was idle, and more went meanwhile. */
static bool many_go_after_an_episode(void)
{
	unsigned int idle = atomic_load(&pair->programs[0].idle);
	uint64_t before = wait_for_bounds(bounds() + 1);
	unsigned int done = pair_done(1);
	uint64_t after = wait_for_bounds(before + 4);
	unsigned int went = pair_done(1) - done;

	pair_wait_for_done(0, 1);
	return atomic_load(&pair->programs[0].idle) == idle && went >= SHORT_ONES * (after - before);
}

/* The free time does not end with the first of them. */
TEST(short_ones_have_their_time)
{
	pair_start(0, be_high_with_much);
	pair_start(1, be_low_in_short);
	pair_wait_for_aside(1, 200000);
	timed_until (many_go_after_an_episode())
		;
	pair_finish_both();
}

#define WORK 6
#define BOUND_S 0.1 /* of a hold */

/* The higher one works and pauses. Whether the lower one was held from the beginning of the work on, and then went on: not after its
 * bound, nor at a look that comes each 100 ms. */
static bool follows(void)
{
	double begin = timed_now_s();

	atomic_store(&pair->pauses, false);
	pair_wait_for_done(0, 1);
	unsigned int before = pair_done(1);

	pair_wait_for_done(0, WORK);
	unsigned int held = pair_done(1) - before;

	atomic_store(&pair->pauses, true);
	pair_wait_for_done(1, WORK);
	return held <= WORK / 2 && timed_now_s() - begin < BOUND_S;
}

/* The machine may be busy: so three times in a row are enough. */
TEST(follows_at_once)
{
	unsigned int times = 0;

	run_low_beside_high(be_low);
	timed_until (times == 3)
		times = follows() ? times + 1 : 0;
	pair_finish_both();
}

/* --- those that do not go on ---------------------------------------------------------------------------------------- */

/* Many launches, and no bound has let one go. What it says of bounds comes later, but not as late. */
static bool goes_freely(unsigned int number)
{
	uint64_t bounded = pair_time_of(number).bounded;

	pair_wait_for_done(number, 200);
	return pair_time_of(number).bounded == bounded;
}

/* A simulated GPU goes on giving time slices to who is stopped; but nobody is held for it, also before it is known to be gone,
 * and afterwards. */
TEST(stopped_and_killed)
{
	run_low_beside_high(be_low);
	kill(pair_children[0].pid, SIGSTOP);
	timed_until (goes_freely(1))
		;
	kill(pair_children[0].pid, SIGCONT);
	pair_wait_for_aside(1, 200000);
	kill(pair_children[0].pid, SIGKILL);
	pair_wait_for(0);
	timed_until (goes_freely(1))
		;
	pair_finish(1);
}

/* --- members of a group --------------------------------------------------------------------------------------------- */

static const struct segment_quota third = {.run_us = 30000, .period_us = 100000}, all = {.run_us = 10000, .period_us = 10000};

static void be_member(unsigned int number)
{
	self = number;
	timed_open_gpu();
	timed_give_to_group(third);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_HELD);
}

/* Its kernel waits for a launch of the other member, and is charged to both. */
static void be_rank_that_waits(void)
{
	uint64_t cycles = UINT64_C(20000000000); /* some 10 s */
	void *parameters[] = {&gpu.output, &cycles};
	CUevent end;

	be_member(0);
	CUstream stream = gpu_new_stream();

	gpu_check(cuEventCreate(&end, 0));
	pair_note(self, 1);
	timed_wait_until(pair_done(1) > 0);
	gpu_check(cuLaunchCooperativeKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters));
	gpu_check(cuEventRecord(end, stream));
	uint64_t used = timed_look().present_us;

	timed_wait_until(timed_look().present_us > used + 60000);
	pair_note(self, 1);
	timed_wait_until(pair_done(1) > 1);
	assert_int_equal(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	timed_give_to_group(all);
	_exit(0);
}

#define LATE_LAUNCHES 20 /* the first one goes: its thread has not looked since the other one has used the quota */

static void be_rank_that_is_late(void)
{
	be_member(1);
	pair_note(self, 1);
	timed_wait_until(pair_done(0) > 1);
	for (unsigned int i = 0; i < LATE_LAUNCHES; i++)
		timed_work(1);
	pair_note(self, 1);
}

TEST(ranks)
{
	pair_start(0, be_rank_that_waits);
	pair_start(1, be_rank_that_is_late);
	pair_finish_both();
}

RUN_TESTS_ALONE(NULL, NULL, set_up, tear_down)
