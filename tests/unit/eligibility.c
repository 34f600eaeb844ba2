/*
 * A program is about to be suspended while a thread of the program finds a reason against it. In every order,
 * the thread goes on only while the program runs.
 *
 * sanitizers: no
 */
#include "orders.h"

#include "base/clock.h"

#define clock_pause_us(us) orders_wait()
#include "../../src/time/turns/eligibility.c"

static bool is_stopped, goes_on, were_both;

static void begin(void)
{
	eligibility_after_fork();
	is_stopped = goes_on = were_both = false;
}

static void suspend(void)
{
	if (!eligibility_begin_suspension())
		return;
	is_stopped = true;
	were_both |= goes_on;
	orders_give_way();
	is_stopped = false;
	eligibility_end_suspension();
}

static void find_reason(void)
{
	eligibility_lost(SEGMENT_TIME_MANAGED);
	eligibility_wait_until_resumed();
	goes_on = true;
	were_both |= is_stopped;
}

static void end(void)
{
	assert_false(were_both);
	assert_int_equal(eligibility_reason(), SEGMENT_TIME_MANAGED);
}

TEST(who_finds_a_reason_goes_on_only_while_the_program_runs)
{
	orders_try(begin, suspend, find_reason, end);
}

RUN_TESTS(NULL, NULL)
