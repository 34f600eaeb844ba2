/* The law of lending (src/time/rules/lending.h), on the test's clock. */
#include "../cases.h"

#include "time/rules/lending.h"

#define MS UINT64_C(1000000)
#define NOW (1000 * MS)
#define LONG (4 * MS)

/* --- claim -------------------------------------------------------------------------------------------------------- */

static struct lending_claim claim;

FIXTURE(begin)
{
	claim = (struct lending_claim){.since = 0};
}

static uint64_t look(uint64_t launches, bool wants, uint64_t at)
{
	return lending_idle_ns(&claim, launches, wants, NOW + at, LONG);
}

/* Nobody knows for how long the claim was idle before the first look. */
TEST(idle_since_it_was_seen)
{
	assert_each(look(7, true, 0), 0, look(7, false, MS), 0, look(7, false, MS + 1), 1, look(7, false, 3 * MS), 2 * MS);
	assert_false(lending_is_at_rest(&claim, 7));
	assert_each(look(7, false, MS + LONG - 1), LONG - 1, look(7, false, MS + LONG), LONG);
	assert_true(lending_is_at_rest(&claim, 7));
	assert_each(look(7, false, 900 * MS), LONG, look(7, true, 901 * MS), 0, look(7, false, 902 * MS), 0);
}

/* A launch that began and ended between two looks. */
TEST(launched_between_two_looks)
{
	look(7, false, 0);
	assert_each(look(8, false, 3 * MS), 0, look(8, false, 4 * MS), MS);
	look(8, false, 9 * MS);
	assert_true(lending_is_at_rest(&claim, 8));
	assert_false(lending_is_at_rest(&claim, 9));
	assert_each(look(9, false, 10 * MS), 0, look(9, false, 11 * MS), MS);
}

/* Of two threads, one has read the clock before the other one has looked. */
TEST(a_clock_of_before)
{
	look(7, false, MS);
	assert_each(look(7, false, 0), 0, look(7, false, MS), MS);
	look(7, false, 10 * MS);
	assert_int_equal(look(7, false, 2 * MS), LONG);
}

/* --- window ------------------------------------------------------------------------------------------------------- */

TEST(window)
{
	/* The gaps between short kernels lend nothing. */
	assert_each(lending_window_ns(0, 2 * MS, 1), 0, lending_window_ns(MS / 4, 2 * MS, 1), 0);
	assert_each(lending_window_ns(MS / 4 + 1, 2 * MS, 1), 1, lending_window_ns(MS, 2 * MS, 1), MS * 3 / 4);
	assert_each(lending_window_ns(lending_rest_ns(2 * MS), 2 * MS, 1), 2 * MS,
	            lending_window_ns(lending_rest_ns(2 * MS) - 1, 2 * MS, 1), 2 * MS - 1);
	assert_int_equal(lending_window_ns(900 * MS, 2 * MS, 1), 2 * MS);
	assert_each(lending_first_ns(MS), MS / 8, lending_first_ns(900 * MS), MS / 4);
	/* All borrowers together have no more than one. */
	assert_each(lending_window_ns(MS, 2 * MS, 2), MS * 3 / 8, lending_window_ns(900 * MS, 2 * MS, 4), MS / 2);
}

/* With a quarter on top. */
TEST(a_guess)
{
	assert_each(lending_guess_ns(8 * MS, 4, 8), 5 * MS, lending_guess_ns(8 * MS, 4, 4), 10 * MS);
	assert_each(lending_guess_ns(8 * MS, 0, 4), 0, lending_guess_ns(8 * MS, 4, 0), 0);
}

RUN_TESTS(begin, NULL)
