/*
 * The bounds of the rules in time (src/time/rules), in numbers, at the moments where an answer changes.
 * tests/unit/rules.c has a model of programs under these rules.
 */
#include "../cases.h"
#include "time/rules/rules.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define NOW (10 * SECOND + 100 * MS) /* in no turn of a lower priority */

static const struct suspension none = {.is_on = false};

/* --- priority ----------------------------------------------------------------------------------------------------- */

static struct priority priority;
static struct rivals above; /* a program of a higher priority */
static _Atomic uint64_t served;
static struct weight weight;

FIXTURE(begin)
{
	above = rivals_none;
	above.has_higher = true;
	above.higher_wanting = 1;
	above.higher_idle_ns = 0;
	priority = (struct priority){.working = 0};
	atomic_store(&served, 0);
	weight = (struct weight){.weight = 0};
}

static struct rules_verdict ask(uint64_t at)
{
	return priority_ask(&priority, at, true, &none, &above);
}

static void have_idle(uint64_t ns)
{
	above.higher_wanting = 0;
	above.higher_idle_ns = ns;
}

TEST(slices)
{
	assert_int_equal(ask(NOW).slice_us, 20);
	above.lower_wanting = 1;
	assert_int_equal(ask(NOW).slice_us, 1000);
	above.lower_wanting = 0;
	assert_each(ask(NOW + SECOND - 1).slice_us, 1000, ask(NOW + SECOND).slice_us, 20);
	above = (struct rivals){.has_lower = true};
	assert_int_equal(ask(NOW).slice_us, 4000);
}

/* The fifth look decides. Looks that are closer count once. */
static void see_work(void)
{
	for (unsigned int i = 0; i < 4; i++)
		assert_each(ask(NOW + i * 800 * US).suspends, false, ask(NOW + (i + 1) * 800 * US - 1).suspends, false);
	assert_true(ask(NOW + 4 * 800 * US).suspends);
}

TEST(a_pause)
{
	see_work();
	have_idle(800 * US - 1);
	assert_true(ask(NOW + 4 * MS).suspends);
	have_idle(800 * US);
	assert_false(ask(NOW + 4 * MS).suspends);
}

TEST(gaps)
{
	see_work();
	have_idle(150 * US - 1);
	for (unsigned int i = 0; i < 9; i++)
		assert_true(ask(NOW + (4 + i) * MS).suspends);
	assert_int_equal(ask(NOW + 13 * MS).until, NOW + 13 * MS + 150 * US);
	have_idle(150 * US);
	assert_each(ask(NOW + 14 * MS).suspends, true, ask(NOW + 15 * MS).suspends, false);
}

/* A time slice for each, twice in a second: here 4 ms and twice 2 ms. */
TEST(turns)
{
	see_work();
	above.lower_wanting = 1;
	uint64_t period = NOW - 100 * MS + SECOND / 2;

	assert_each(ask(period - 1).suspends, true, ask(period).suspends, false);
	assert_each(ask(period + 8 * MS - 1).suspends, false, ask(period + 8 * MS).suspends, true);
	assert_each(ask(period + 1).until, period + 8 * MS, ask(period + 9 * MS).until, period + SECOND / 2);
	above.lower_wanting = 1000;
	assert_each(ask(period + SECOND / 4 - 1).suspends, false, ask(period + SECOND / 4).suspends, true);
}

/* --- weight ------------------------------------------------------------------------------------------------------- */

static struct rules_verdict weigh(uint64_t at, uint64_t others_ns, const struct suspension *suspension)
{
	const struct rules_view view = {.wants = true, .is_present = true, .gpus_wanting = 1};
	struct rivals equals = rivals_none;

	equals.equals_wanting = 1;
	equals.least_served_ns = others_ns;
	return weight_ask(&weight, at, &view, false, suspension, &equals);
}

/* Half of the usual weight counts twice. */
TEST(a_lead)
{
	weight_use(&weight, SEGMENT_WEIGHT_USUAL / 2, &served, NOW);
	assert_int_equal(weigh(NOW, SECOND, &none).slice_us, 6000);
	atomic_store(&served, SECOND + 64 * MS);
	assert_false(weigh(NOW, SECOND, &none).suspends);
	atomic_store(&served, SECOND + 64 * MS + 1);
	assert_true(weigh(NOW, SECOND, &none).suspends);
	assert_true(weigh(NOW, SECOND + 64 * MS, &none).suspends);
	assert_false(weigh(NOW, SECOND + 64 * MS + 1, &none).suspends);
}

/* Two leads at most, and after four seconds of waiting none. */
TEST(a_wait_ends)
{
	const struct suspension suspended = {.is_on = true};

	weight_use(&weight, SEGMENT_WEIGHT_USUAL, &served, NOW);
	weigh(NOW, SECOND, &none);
	atomic_store(&served, 9 * SECOND);
	assert_true(weigh(NOW, SECOND, &none).suspends);
	assert_int_equal(served, SECOND + 64 * MS);
	for (unsigned int i = 1; i < 4; i++)
		assert_true(weigh(NOW + i * SECOND, SECOND, &suspended).suspends);
	assert_true(weigh(NOW + 4 * SECOND - 1, SECOND, &suspended).suspends);
	assert_false(weigh(NOW + 4 * SECOND, SECOND, &suspended).suspends);
	assert_int_equal(served, SECOND);
}

/* A thread that did not look for longer than a second has not seen what happened. */
TEST(a_late_look)
{
	weight_use(&weight, SEGMENT_WEIGHT_USUAL, &served, NOW);
	weigh(NOW, UINT64_MAX, &none);
	weigh(NOW + SECOND, UINT64_MAX, &none);
	assert_int_equal(served, SECOND);
	weigh(NOW + 11 * SECOND, UINT64_MAX, &none);
	assert_int_equal(served, 2 * SECOND);
}

/* --- quota -------------------------------------------------------------------------------------------------------- */

static uint64_t until_the_next_look(int64_t period_ns)
{
	struct quota quota = {.is_spent = false};
	struct budget budget = {.allowance = 0};
	uint64_t until;

	quota_use(&quota, period_ns * 9 / 10, period_ns, &budget, NOW);
	quota_ask(&quota, NOW, true, &none, &until);
	return until - NOW;
}

/* A hundred looks in a period, at a distance of 0.5 to 5 ms. */
TEST(looks_at_a_quota)
{
	assert_each(until_the_next_look(100 * MS), MS, until_the_next_look(300 * MS), 3 * MS);
	assert_each(until_the_next_look(20 * MS), 500 * US, until_the_next_look(9 * SECOND), 5 * MS);
}

/* The GPU goes on for a while after a program was suspended. */
TEST(lag)
{
	struct quota quota = {.is_spent = false};
	struct budget budget = {.allowance = 0};

	quota_use(&quota, 10 * MS, 100 * MS, &budget, NOW);
	assert_int_equal(quota_soonest(&quota, NOW), NOW + 10 * MS - 280 * US);
}

TEST(debts)
{
	assert_each(budget_longest_debt(100 * MS), 2 * SECOND, budget_longest_debt(9 * SECOND), 9 * SECOND);
}

/* --- all rules ---------------------------------------------------------------------------------------------------- */

TEST(looks)
{
	const struct segment_revision revision = {.rank = {.priority = 21, .weight = 100}};
	const struct rules_view view = {.wants = true, .gpus_wanting = 1};
	struct rules rules = {.bounded = 0};
	struct budget budget = {.allowance = 0};

	rules_use(&rules, &revision, &budget, &served, NOW);
	assert_int_equal(rules_ask(&rules, NOW, &view, &none, &rivals_none).until, NOW + 10 * MS);
	assert_int_equal(rules_ask(&rules, NOW, &view, &none, &above).until, NOW + MS);
}

RUN_TESTS(begin, NULL)
