/* The law of the gate, with what is in flight and the clock as the test says. */
#include "../cases.h"

#include "time/rules/lending.h"

#define MS UINT64_C(1000000)
#define NOW (1000 * MS)

/* --- idle ------------------------------------------------------------------------------------------------------------- */

static struct lending_owner owner;

FIXTURE(begin)
{
	owner = (struct lending_owner){.since = 0};
}

static bool opens(uint64_t launches, bool wants, uint64_t at)
{
	return lending_opens(&owner, launches, wants, NOW + at, 2 * MS);
}

TEST(after_a_while)
{
	assert_false(opens(7, true, 0));
	assert_false(opens(7, false, MS));
	assert_false(opens(7, false, 3 * MS - 1));
	assert_true(opens(7, false, 3 * MS));
	assert_true(lending_stays_open(&owner, 7));
	assert_true(opens(7, false, 3 * MS));
}

/* One that was launched and has ended between two looks begins it anew, also where it was open. */
TEST(launched_between_two_looks)
{
	opens(7, false, 0);
	assert_false(opens(8, false, 5 * MS));
	assert_false(opens(8, false, 7 * MS - 1));
	assert_true(opens(8, false, 7 * MS));
	assert_false(lending_stays_open(&owner, 9));
	assert_false(opens(9, false, 20 * MS));
	assert_false(lending_stays_open(&owner, 9));
	assert_true(opens(9, false, 22 * MS));
	assert_false(opens(9, true, 23 * MS));
	assert_false(opens(9, false, 30 * MS));
}

/* Where nobody has to pause: as soon as nothing is in flight. */
TEST(at_once)
{
	assert_true(lending_opens(&owner, 7, false, NOW, 0));
	assert_true(lending_stays_open(&owner, 7));
	assert_false(lending_opens(&owner, 8, true, NOW, 0));
	assert_true(lending_opens(&owner, 8, false, NOW, 0));
}

/* --- window ----------------------------------------------------------------------------------------------------------- */

static const struct lending_view usual = {
	.has_part = true, .has_more = true, .may_drain = true, .limit_ns = 2 * MS, .batch_ns = MS / 10};

struct launch {
	uint64_t length_ns;
	bool may_wait;
};

static void assert_verdict(struct lending_view view, struct launch launch, enum lending_verdict expected)
{
	view.length_ns = launch.length_ns;
	view.may_wait = launch.may_wait;
	assert_int_equal(lending_ask(&view), expected);
}

static struct lending_view flying(uint64_t launches, uint64_t longest_ns)
{
	struct lending_view view = usual;

	view.in_flight = launches;
	view.longest_ns = longest_ns;
	return view;
}

static struct launch of(uint64_t length_ns)
{
	return (struct launch){.length_ns = length_ns};
}

TEST(one_that_ends_in_time)
{
	assert_verdict(usual, of(2 * MS), LENDING_MORE);
	assert_verdict(usual, of(2 * MS + 1), LENDING_PART);
	assert_verdict(usual, of(LENDING_NEVER), LENDING_PART);
	assert_verdict(usual, (struct launch){.length_ns = MS, .may_wait = true}, LENDING_PART);
	/* What is not known is measured in the own part, alone. */
	assert_verdict(usual, of(0), LENDING_PART);
	assert_verdict(flying(1, MS), of(0), LENDING_ROOM);
	/* One more would make the owner wait for two. */
	assert_verdict(flying(1, MS), of(MS / 100), LENDING_ROOM);
	assert_verdict(flying(1, MS / 100), of(MS), LENDING_ROOM);
	assert_verdict(flying(1, LENDING_NEVER), of(MS / 100), LENDING_ROOM);
	assert_verdict(flying(1, MS), of(3 * MS), LENDING_PART);
}

TEST(several_short_ones)
{
	assert_verdict(flying(9, MS / 100), of(MS / 100), LENDING_MORE);
	assert_verdict(flying(10, MS / 100), of(MS / 100), LENDING_ROOM);
	assert_verdict(flying(4, MS / 100), of(MS / 50), LENDING_MORE);
	assert_verdict(flying(5, MS / 100), of(MS / 50), LENDING_ROOM);
	assert_verdict(flying(1, MS / 100), (struct launch){.length_ns = MS / 100, .may_wait = true}, LENDING_ROOM);
}

/* It took too long to drain: the own part is there. */
TEST(no_more_waiting)
{
	struct lending_view view = flying(3, MS);

	view.may_drain = false;
	assert_verdict(view, of(MS), LENDING_PART);
	view.has_part = false;
	assert_verdict(view, of(MS), LENDING_ROOM);
}

TEST(without_a_part)
{
	struct lending_view view = usual, closed = usual;

	view.has_part = closed.has_part = closed.has_more = false;
	assert_verdict(closed, of(MS), LENDING_CLOSED);
	assert_verdict(view, of(0), LENDING_MORE);
	assert_verdict(view, of(LENDING_NEVER), LENDING_MORE);
	view.in_flight = 1;
	view.longest_ns = MS / 100;
	assert_verdict(view, of(MS), LENDING_ROOM);
	assert_verdict(view, of(MS / 100), LENDING_MORE);
	view.takes_any = true;
	assert_verdict(view, of(MS), LENDING_MORE);
	closed.takes_any = true;
	assert_verdict(closed, of(MS), LENDING_CLOSED);
	closed.has_part = true;
	assert_verdict(closed, of(MS), LENDING_PART);
}

/* --- lengths ---------------------------------------------------------------------------------------------------------- */

TEST(the_longest_of_late)
{
	uint64_t lengths = 0;

	assert_int_equal(lending_longest(lengths), 0);
	lengths = lending_add_length(lengths, 10 * MS);
	assert_in_range(lending_longest(lengths), 10 * MS, 10 * MS + 2000);
	for (int i = 0; i < 3; i++) {
		lengths = lending_add_length(lengths, MS);
		assert_in_range(lending_longest(lengths), 10 * MS, 10 * MS + 2000);
	}
	lengths = lending_add_length(lengths, MS);
	assert_in_range(lending_longest(lengths), MS, MS + 2000);
	assert_true(lending_longest(lending_add_length(0, 0)) > 0);
	assert_in_range(lending_longest(lending_add_length(0, 1000 * MS)), 131 * MS, 132 * MS);
}

TEST(measured_again)
{
	unsigned int usual_times = 0, long_times = 0;

	for (uint32_t number = 1; number <= 4096; number++) {
		usual_times += lending_is_due(number, false);
		long_times += lending_is_due(number, true);
	}
	assert_in_range(usual_times, 15, 30);
	assert_in_range(long_times, 64, 90);
}

/* --- episode ---------------------------------------------------------------------------------------------------------- */

TEST(nobody_waits_for_ever)
{
	struct lending_episode episode = {.since = 0};

	assert_false(lending_waits(&episode, NOW));
	assert_false(lending_waits(&episode, NOW + 99 * MS));
	/* A launch that went in between begins it anew. */
	lending_goes(&episode);
	assert_false(lending_waits(&episode, NOW + 100 * MS));
	assert_false(lending_waits(&episode, NOW + 199 * MS));
	assert_true(lending_waits(&episode, NOW + 200 * MS));
	assert_true(lending_is_free(&episode, NOW + 201 * MS, false));
	assert_true(lending_is_free(&episode, NOW + 209 * MS, false));
	assert_false(lending_is_free(&episode, NOW + 210 * MS, false));
	assert_false(lending_waits(&episode, NOW + 211 * MS));
	assert_true(lending_waits(&episode, NOW + 311 * MS));
	assert_false(lending_is_free(&episode, NOW + 312 * MS, true));
	assert_false(lending_is_free(&episode, NOW + 313 * MS, false));
}

RUN_TESTS(begin, NULL)
