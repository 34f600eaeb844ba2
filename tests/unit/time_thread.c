/*
 * Our thread sleeps over nothing that comes while it looks, or while it ends; and what calls of the program tell it.
 *
 * Nothing is suspended here.
 *
 * link: -Wl,--wrap=turns_look,--wrap=keeper_end,--wrap=turns_end,--wrap=kernel_access_begin,--wrap=kernel_access_end,--wrap=hook_want_more
 * link: -Wl,--wrap=keeper_follow,--wrap=keeper_look,--wrap=kernel_access_is_of_mps
 */
#include "../cases.h"
#include "driver/streams.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/owner.h"
#include "time/control.h"
#include "time/thread.h"
#include "time/turns/eligibility.h"
#include "time/turns/kernel_access.h"
#include "time/turns/turns.h"

#define PATIENCE_S 60

static const struct segment_revision third = {.quota = {.run_us = 30000, .period_us = 100000}};
static const struct segment_revision lifted = {.quota = {.run_us = 100000, .period_us = 100000}};

static struct segment segment;
static atomic_uint looks;
static atomic_bool is_client;
static atomic_int state_at_first_look = SEGMENT_TIME_NONE; /* enum segment_time_state */
static void (*_Atomic at_follow)(void), (*_Atomic at_look)(void), (*_Atomic at_end)(void); /* once, in our thread */

static void give(const struct segment_revision *revision)
{
	struct segment editor;
	struct error error;

	assert_int_equal(segment_open(&editor, getpid(), NULL, NULL), SEGMENT_FOUND);
	assert_done(segment_change(&editor, revision, NULL, &error));
	segment_close(&editor);
}

static void do_once(void (*_Atomic *what)(void))
{
	void (*now)(void) = atomic_exchange(what, NULL);

	if (now)
		now();
}

/* --- in the place of what suspends a program: the linker calls these ----------------------------------------------- */

WRAP(uint64_t, turns_look, uint64_t number, bool *is_idle)
{
	*is_idle = false;
	do_once(&at_look);
	atomic_fetch_add(&looks, 1);
	return UINT64_MAX;
}

WRAP(bool, kernel_access_is_of_mps, void)
{
	return atomic_load(&is_client);
}

WRAP(void, keeper_follow, const struct segment *of, const struct segment_revision *revision)
{
}

/* The gate is closed until the first look. */
WRAP(uint64_t, keeper_look, uint64_t now, bool *is_idle)
{
	struct segment_time time;
	int none = SEGMENT_TIME_NONE;

	segment_read_time(&segment, &time);
	atomic_compare_exchange_strong(&state_at_first_look, &none, (int)time.state);
	*is_idle = false;
	atomic_fetch_add(&looks, 1);
	return UINT64_MAX;
}

/* It is called after a revision was read. */
WRAP(void, keeper_end, void)
{
	do_once(&at_follow);
}

static atomic_uint turns_ended;

WRAP(void, turns_end, void)
{
	atomic_fetch_add(&turns_ended, 1);
	do_once(&at_end);
}

WRAP(void, kernel_access_begin, void)
{
}

WRAP(void, kernel_access_end, void)
{
}

WRAP(void, hook_want_more, void)
{
}

/* --- cases --------------------------------------------------------------------------------------------------------- */

static void wait_for_looks(unsigned int wanted)
{
	for (int ms = 0; atomic_load(&looks) < wanted && ms < PATIENCE_S * 1000; ms++)
		usleep(1000);
	assert_true(atomic_load(&looks) >= wanted);
}

FIXTURE(begin_all)
{
	struct error error;

	setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/null", 1);
	assert_done(segment_create(&segment, &lifted, NULL, -1, -1, &error));
	control_use(&segment);
}

FIXTURE(begin)
{
	atomic_store(&looks, 0);
	give(&third);
}

FIXTURE(end)
{
	give(&lifted);
	for (int ms = 0; time_thread_exists() && ms < PATIENCE_S * 1000; ms++)
		usleep(1000);
	assert_false(time_thread_exists());
}

TEST(rung_in_a_look)
{
	atomic_store(&at_look, time_thread_ring);
	control_look();
	wait_for_looks(2);
}

static void give_third(void)
{
	give(&third);
}

TEST(an_edit_while_it_follows_another_one)
{
	atomic_store(&at_follow, give_third);
	control_look();
	wait_for_looks(2);
}

TEST(an_edit_by_somebody_else)
{
	control_look();
	wait_for_looks(1);
	give(&third);
	wait_for_looks(2);
}

static void give_again(void)
{
	give(&third);
	control_look();
}

TEST(given_while_it_ends)
{
	control_look();
	wait_for_looks(1);
	atomic_store(&at_end, give_again);
	unsigned int before = atomic_load(&looks);

	give(&lifted);
	wait_for_looks(before + 1);
}

/* Readers of the state count on the quota. */
TEST(in_force_once_the_gate_has_looked)
{
	struct segment_time time = {.state = SEGMENT_TIME_NONE};

	atomic_store(&is_client, true);
	control_look();
	wait_for_looks(1);
	assert_int_equal(atomic_load(&state_at_first_look), SEGMENT_TIME_PENDING);
	for (int ms = 0; time.state != SEGMENT_TIME_MPS_GONE && ms < PATIENCE_S * 1000; ms++, usleep(1000))
		segment_read_time(&segment, &time);
	assert_int_equal(time.state, SEGMENT_TIME_MPS_GONE);
	atomic_store(&is_client, false);
}

/* The program may be suspended. */
TEST(a_daemon_of_mps_that_comes_later_ends_the_turns)
{
	control_look();
	wait_for_looks(1);
	unsigned int ended = atomic_load(&turns_ended);

	atomic_store(&is_client, true);
	give(&third);
	wait_for_looks(2);
	assert_int_equal(atomic_load(&turns_ended), ended + 1);
	give(&third);
	wait_for_looks(3);
	assert_int_equal(atomic_load(&turns_ended), ended + 1);
	atomic_store(&is_client, false);
}

/* Our thread may sleep, and a launch of a graph uploads nothing. */
TEST(launches_of_graphs_are_heard)
{
	assert_false(control_wants_call(CALL_GRAPH_LAUNCH));
	control_look();
	wait_for_looks(1);
	assert_true(control_wants_call(CALL_GRAPH_LAUNCH) && control_wants_call(CALL_GRAPH_LAUNCH_PER_THREAD));
	assert_false(control_wants_call(CALL_GRAPH_UPLOAD));
}

/* It may come later than all that this process has in flight. */
TEST(an_event_of_another_process)
{
	const struct call opens = {.id = CALL_IPC_OPEN_EVENT};

	assert_false(streams_wait_for_event(CU_STREAM_LEGACY, NULL, false));
	control_call_begins(&opens);
	assert_true(streams_wait_for_event(CU_STREAM_LEGACY, NULL, false));
	streams_forget();
	eligibility_after_fork();
}

RUN_TESTS_IN(begin_all, NULL, begin, end)
