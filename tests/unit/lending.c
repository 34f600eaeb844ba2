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

static uint64_t look(uint64_t launches, bool wants, uint64_t at)
{
	return lending_opens_in(&owner, launches, wants, NOW + at, 2 * MS);
}

TEST(after_a_while)
{
	assert_true(look(7, true, 0) == LENDING_NEVER);
	assert_each(look(7, false, MS), 2 * MS, look(7, false, 3 * MS - 1), 1, look(7, false, 3 * MS), 0);
	assert_true(lending_stays_open(&owner, 7));
	assert_int_equal(look(7, false, 3 * MS), 0);
}

/* One that was launched and has ended between two looks begins it anew, also where it was open. */
TEST(launched_between_two_looks)
{
	look(7, false, 0);
	assert_each(look(8, false, 5 * MS), 2 * MS, look(8, false, 7 * MS - 1), 1, look(8, false, 7 * MS), 0);
	assert_false(lending_stays_open(&owner, 9));
	assert_int_equal(look(9, false, 20 * MS), 2 * MS);
	assert_false(lending_stays_open(&owner, 9));
	assert_int_equal(look(9, false, 22 * MS), 0);
	assert_true(look(9, true, 23 * MS) == LENDING_NEVER);
	assert_int_equal(look(9, false, 30 * MS), 2 * MS);
}

/* By a thread that has read its clock before another one has looked. */
TEST(a_clock_of_before)
{
	look(7, false, MS);
	assert_int_equal(look(7, false, 0), 2 * MS);
	assert_false(lending_stays_open(&owner, 7));
}

/* Where nobody has to pause: as soon as nothing is in flight. */
TEST(at_once)
{
	assert_int_equal(lending_opens_in(&owner, 7, false, NOW, 0), 0);
	assert_true(lending_stays_open(&owner, 7));
	assert_true(lending_opens_in(&owner, 8, true, NOW, 0) == LENDING_NEVER);
	assert_int_equal(lending_opens_in(&owner, 8, false, NOW, 0), 0);
}

/* What takes a quarter of how long it has been idle by then, and that is some time. */
TEST(early)
{
	static const struct {
		uint64_t opens_in, length, expected;
	} cases[] = {
		{0, MS, 0},
		{0, 0, 0},
		{2 * MS, 0, 2 * MS},
		{LENDING_NEVER, 1, LENDING_NEVER},
		{2 * MS, 1, MS / 5},
		{2 * MS - MS / 10, 1, MS / 10},
		{2 * MS - MS / 5, 1, 0},
		{2 * MS, MS / 10, MS / 5 * 2},
		{MS, MS / 10, 0},
		{MS, MS / 10 * 3, MS / 5},
		{2 * MS, MS / 2, 2 * MS},
		{MS / 10, MS / 2, MS / 10},
		{2 * MS, LENDING_NEVER, 2 * MS},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(lending_opens_early(cases[i].opens_in, 2 * MS, cases[i].length), cases[i].expected);
	/* Where it opens sooner than that. */
	assert_each(lending_opens_early(MS / 20, MS / 20, 1), MS / 20, lending_opens_early(0, MS / 20, 1), 0);
}

/* --- window ----------------------------------------------------------------------------------------------------------- */

static const struct lending_view usual = {
	.has_part = true, .has_more = true, .may_open = true, .is_patient = true, .opens_in_ns = LENDING_NEVER, .limit_ns = 2 * MS, .batch_ns = MS / 10};

/* So many launches are in flight, of which none takes longer. */
static struct lending_view flying(struct lending_view view, uint64_t launches, uint64_t longest_ns)
{
	view.in_flight = launches;
	view.is_behind = true;
	view.in_flight_ns = longest_ns == LENDING_NEVER ? longest_ns : launches * longest_ns;
	return view;
}

static void assert_verdict(struct lending_view view, uint64_t length_ns, enum lending_verdict expected)
{
	view.length_ns = view.part_ns = length_ns;
	assert_int_equal(lending_ask(&view), expected);
}

TEST(one_that_ends_in_time)
{
	assert_verdict(usual, 2 * MS, LENDING_MORE);
	assert_verdict(usual, 2 * MS + 1, LENDING_PART);
	assert_verdict(usual, LENDING_NEVER, LENDING_PART);
	assert_verdict(usual, 0, LENDING_PART);
	/* One more would make the owner wait for two. */
	assert_verdict(flying(usual, 1, MS), MS / 100, LENDING_ROOM);
	assert_verdict(flying(usual, 1, MS / 100), MS, LENDING_ROOM);
	assert_verdict(flying(usual, 1, LENDING_NEVER), MS / 100, LENDING_ROOM);
	/* What cannot borrow waits for nothing. */
	assert_verdict(flying(usual, 1, MS), 3 * MS, LENDING_PART);
	assert_verdict(flying(usual, 1, MS), 0, LENDING_PART);
}

TEST(behind_something)
{
	struct lending_view view = usual;

	view.may_wait = true;
	assert_verdict(view, MS, LENDING_PART);
	assert_verdict(flying(view, 1, MS / 100), MS / 100, LENDING_PART);
	view.has_part = false;
	assert_verdict(view, MS, LENDING_MORE);
	assert_verdict(flying(view, 1, MS / 100), MS / 100, LENDING_ROOM);
}

TEST(several_short_ones)
{
	assert_verdict(flying(usual, 9, MS / 100), MS / 100, LENDING_MORE);
	assert_verdict(flying(usual, 10, MS / 100), MS / 100, LENDING_ROOM);
	assert_verdict(flying(usual, 4, MS / 100), MS / 50, LENDING_MORE);
	assert_verdict(flying(usual, 8, MS / 100), MS / 50, LENDING_MORE);
	assert_verdict(flying(usual, 9, MS / 100), MS / 50, LENDING_ROOM);
}

/* What is measured runs alone, once, in the own part where it is not known at all. */
TEST(new_ones)
{
	struct lending_view view = usual;

	view.is_new = true;
	assert_verdict(view, 0, LENDING_PART);
	assert_verdict(view, MS, LENDING_MORE);
	assert_verdict(flying(view, 1, MS / 100), 0, LENDING_ROOM);
	assert_verdict(flying(view, 1, MS / 100), MS / 100, LENDING_ROOM);
	/* Also while an owner works, which may come to lend. */
	view.has_more = false;
	assert_verdict(flying(view, 1, MS / 100), 0, LENDING_ROOM);
	assert_verdict(view, 0, LENDING_PART);
	view.may_open = false;
	assert_verdict(flying(view, 1, MS / 100), 0, LENDING_PART);
}

/* While an owner works, what ends within LIMIT goes at once, one behind another at least; while it pauses, nothing is sent that would
 * be there when its TPCs open. */
TEST(own_part)
{
	struct lending_view view = usual;

	view.has_more = false;
	assert_verdict(flying(view, 2, MS), MS, LENDING_PART);
	assert_verdict(flying(view, 2, MS + 1), MS, LENDING_ROOM);
	assert_verdict(flying(view, 1, 9 * MS), 2 * MS, LENDING_ROOM);
	struct lending_view beside = flying(view, 1, 9 * MS);

	beside.is_behind = false; /* another stream may always have one */
	assert_verdict(beside, 2 * MS, LENDING_PART);
	assert_verdict(flying(view, 100, LENDING_NEVER), MS, LENDING_PART);
	/* What cannot borrow, or behind an owner that is never known to be idle. */
	assert_verdict(flying(view, 100, 9 * MS), 3 * MS, LENDING_PART);
	view.may_open = false;
	assert_verdict(flying(view, 100, 9 * MS), MS, LENDING_PART);
	view.may_open = true;
	view.opens_in_ns = 2 * MS;
	assert_verdict(view, 2 * MS, LENDING_PART);
	assert_verdict(flying(view, 1, MS), MS, LENDING_PART);
	assert_verdict(flying(view, 1, MS + 1), MS, LENDING_ROOM);
	assert_verdict(flying(view, 2, MS), MS, LENDING_ROOM);
	assert_verdict(flying(view, 1, LENDING_NEVER), MS, LENDING_ROOM);
	assert_verdict(flying(view, 1, 3 * MS), 3 * MS, LENDING_PART);
	view.opens_in_ns = 1;
	assert_verdict(flying(view, 9, MS / 100), MS / 100, LENDING_PART);
	assert_verdict(flying(view, 10, MS / 100), MS / 100, LENDING_ROOM);
}

/* It took too long: the own part is there. */
TEST(no_more_waiting)
{
	struct lending_view view = flying(usual, 3, MS);

	view.is_patient = false;
	assert_verdict(view, MS, LENDING_PART);
	view.has_part = false;
	assert_verdict(view, MS, LENDING_ROOM);
}

TEST(without_a_part)
{
	struct lending_view view = usual, closed = usual;

	view.has_part = closed.has_part = closed.has_more = false;
	assert_verdict(closed, MS, LENDING_ROOM);
	assert_verdict(view, 0, LENDING_MORE);
	assert_verdict(view, LENDING_NEVER, LENDING_MORE);
	assert_verdict(flying(view, 1, MS / 100), MS, LENDING_ROOM);
	assert_verdict(flying(view, 1, MS / 100), 0, LENDING_ROOM);
	assert_verdict(flying(view, 1, MS / 100), MS / 100, LENDING_MORE);
	view.takes_any = closed.takes_any = true;
	assert_verdict(flying(view, 1, MS / 100), MS, LENDING_MORE);
	assert_verdict(closed, MS, LENDING_ROOM);
	closed.has_part = true;
	assert_verdict(closed, MS, LENDING_PART);
}

RUN_TESTS(begin, NULL)
