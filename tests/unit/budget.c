/* What a group has used of its quota: whoever charges it, how late, and over how many periods. */
#include "../cases.h"
#include "state/group/budget.h"

#define MS INT64_C(1000000)
#define PERIOD (20 * MS)
#define RUN (5 * MS)
#define THEN UINT64_C(10000000000) /* when a period begins */

static struct budget budget;

FIXTURE(set_up)
{
	budget = (struct budget){.allowance = 0};
}

static uint64_t at(int64_t periods, int64_t more)
{
	return THEN + (uint64_t)(periods * PERIOD + more);
}

static void charge(int64_t periods, int64_t ns)
{
	budget_charge(&budget, RUN, PERIOD, at(periods, 0), at(periods, ns));
}

/* To 1/4096 of the period. */
static void assert_left(int64_t expected, int64_t run_ns, uint64_t now)
{
	int64_t left = budget_left(&budget, run_ns, PERIOD, now);

	assert_in_range(left - expected + PERIOD / 1000, 0, 2 * PERIOD / 1000);
}

/* By one look, at the end. */
TEST(each_period_of_a_long_launch)
{
	charge(0, 3 * PERIOD + 1 * MS);
	assert_left(RUN - 3 * (PERIOD - RUN) - 1 * MS, RUN, at(3, 2 * MS));
	assert_left(RUN - 3 * (PERIOD - RUN) - 1 * MS + 4 * RUN, RUN, at(7, 0));
}

/* Nobody looks for some periods: what was charged before is not forgotten. */
TEST(no_look_for_periods)
{
	charge(0, PERIOD);
	assert_left(2 * RUN - PERIOD, RUN, at(1, 1));
	charge(1, PERIOD);
	assert_left(2 * RUN - 2 * PERIOD + 3 * RUN, RUN, at(4, 0));
}

/* A member gets a processor late, and another has begun the next period. */
TEST(a_late_charge_counts)
{
	assert_left(RUN, RUN, at(0, 1));
	assert_left(RUN, RUN, at(1, 1));
	charge(0, 2 * RUN);
	assert_left(0, RUN, at(1, 2));
}

/* Later still: another one has begun a period in whose place that one stood, or other words of it. */
TEST(nothing_late_wipes_a_later_period)
{
	for (int64_t late = 1; late <= 6; late++) {
		ROW("%d periods", (int)late);
		budget = (struct budget){.allowance = 0};
		assert_left(RUN, RUN, at(late, 1));
		charge(late, RUN);
		charge(0, late == 1 ? RUN : 2 * RUN);
		budget_left(&budget, RUN, PERIOD, at(0, RUN));
		assert_left(0, RUN, at(late, RUN));
	}
}

TEST(another_run_counts_at_once)
{
	charge(0, RUN);
	assert_left(0, RUN, at(0, RUN));
	assert_left(2 * RUN, 3 * RUN, at(0, RUN));
	assert_left(-2 * MS, 3 * MS, at(0, RUN));
}

/* Of periods that are longer, the numbers are lower. */
TEST(another_period_begins_anew)
{
	charge(0, PERIOD);
	assert_int_equal(budget_left(&budget, RUN, 5 * PERIOD, at(0, PERIOD)), RUN);
	assert_int_equal(budget_left(&budget, RUN, PERIOD / 4, at(0, PERIOD)), RUN);
}

TEST(a_debt_ends)
{
	uint64_t end = at(0, 60 * 1000 * MS);

	budget_charge(&budget, RUN, PERIOD, THEN, end);
	assert_true(budget_left(&budget, RUN, PERIOD, end + budget_longest_debt(PERIOD) - PERIOD) <= 0);
	assert_left(RUN, RUN, end + budget_longest_debt(PERIOD) + PERIOD);
}

RUN_TESTS(set_up, NULL)
