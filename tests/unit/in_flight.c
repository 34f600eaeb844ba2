/*
 * Launches in flight (src/time/gate/in_flight.h): the sums equal the sums of a plain model, in any order of ends. And
 * how lengths are learnt, with a GPU whose clock is ahead.
 *
 * link: -Wl,--wrap=process_clock_ns
 */
#include "../cases.h"

#include "base/clock.h"
#include "time/gate/in_flight.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEEN 16         /* launches in flight that a look goes through */
#define AHEAD (77 * MS) /* the GPU's clock */
#define NOW (1000 * MS)

static struct in_flight flying;
static uint64_t cells[IN_FLIGHT_MAX][2];
static uint64_t now;

WRAP(uint64_t, process_clock_ns, void)
{
	return now;
}

FIXTURE(begin)
{
	lengths_forget();
	memset(&flying, 0, sizeof flying);
	memset(cells, 0, sizeof cells);
	random_state = 1;
}

static struct launch_end end_at(unsigned int cell, uint64_t number)
{
	return (struct launch_end){cells[cell], number};
}

static void sweep(bool is_idle)
{
	in_flight_sweep(&flying, is_idle);
}

static void assert_nothing(void)
{
	assert_each(flying.sum, 0, flying.wide, 0, flying.unknown, 0, flying.added, flying.gone);
	assert_int_equal(atomic_load(&flying.until_idle), 0);
}

static const struct launch_end called = {.number = IN_FLIGHT_CALLED}, none = {.number = 0},
                               until_idle = {.number = IN_FLIGHT_UNTIL_IDLE};

TEST(with_the_whole_length)
{
	in_flight_add(&flying, 1, MS, end_at(0, 1));
	in_flight_add(&flying, 0, 2 * MS, end_at(1, 1));
	in_flight_add(&flying, 0, 0, end_at(2, 1));
	assert_each(flying.wide, MS, flying.sum, 3 * MS, flying.unknown, 1);
	cells[0][0] = 1;
	sweep(false);
	assert_each(flying.wide, 0, flying.sum, 2 * MS);
	cells[1][0] = cells[2][0] = 7; /* a later launch has the cell */
	sweep(false);
	assert_nothing();
}

static const struct flying *forget(struct launch_end end)
{
	static uint64_t ticket;

	return in_flight_forget(&flying, end, &ticket);
}

/* A launch that was called back: once, and no launch that is not wide, or has a different end; in any order. */
TEST(forgotten)
{
	in_flight_add(&flying, 0, MS, end_at(0, 5));
	in_flight_add(&flying, 6, 2 * MS, end_at(1, 5));
	in_flight_add(&flying, 1, 4 * MS, end_at(1, 6));
	in_flight_add(&flying, 1, 8 * MS, end_at(2, 5));
	assert_null(forget(end_at(0, 5)));
	assert_null(forget(end_at(3, 5)));
	assert_non_null(forget(end_at(2, 5)));
	const struct flying *was = forget(end_at(1, 5));

	assert_non_null(was);
	assert_each(was->open, 6, was->ns, 2 * MS, flying.wide, 4 * MS, flying.sum, 5 * MS);
	assert_null(forget(end_at(1, 5)));
	cells[1][0] = 6;
	sweep(false);
	assert_null(forget(end_at(1, 6)));
	assert_each(flying.wide, 0, flying.sum, MS);
}

/* Old launches of further streams do not hide the ends of newer launches; but very many do, until some have ended. */
TEST(out_of_order)
{
	for (unsigned int i = 0; i < SEEN + 3; i++)
		in_flight_add(&flying, 1, MS, end_at(i, 1));
	cells[1][0] = cells[SEEN + 1][0] = cells[SEEN + 2][0] = 1;
	sweep(false);
	assert_each(flying.wide, (SEEN + 2) * MS, flying.sum, (SEEN + 2) * MS);
	cells[0][0] = 1;
	sweep(false);
	assert_each(flying.wide, (SEEN - 1) * MS, flying.added - flying.gone, SEEN + 1);
	for (unsigned int i = 0; i < SEEN + 1; i++)
		cells[i][0] = 1;
	sweep(false);
	assert_nothing();
}

TEST(full)
{
	for (unsigned int i = 0; i < IN_FLIGHT_MAX; i++)
		assert_true(in_flight_add(&flying, 1, 1, end_at(i, 1)) != 0);
	assert_int_equal(in_flight_add(&flying, 1, 1, end_at(0, 2)), 0);
	assert_each(flying.sum, IN_FLIGHT_MAX, flying.wide, IN_FLIGHT_MAX);
	cells[0][0] = 1;
	sweep(false);
	assert_true(in_flight_add(&flying, 1, 1, end_at(0, 2)) != 0);
	assert_int_equal(in_flight_add(&flying, 1, 1, end_at(0, 3)), 0);
}

/* Nothing ends a launch whose call goes on. Then the launch has an end, or no end, or ends with all work. */
TEST(ends_that_are_told_later)
{
	uint64_t one = in_flight_add(&flying, 1, MS, called), two = in_flight_add(&flying, 1, 2 * MS, called);

	sweep(true);
	assert_int_equal(flying.sum, 3 * MS);
	in_flight_tell(&flying, two, none);
	sweep(false);
	assert_int_equal(flying.sum, MS);
	in_flight_tell(&flying, one, end_at(0, 3));
	cells[0][0] = 2;
	sweep(true);
	assert_int_equal(flying.sum, MS);
	cells[0][0] = 3;
	sweep(false);
	assert_nothing();
}

TEST(until_nothing_is_in_flight)
{
	in_flight_add(&flying, 1, MS, until_idle);
	in_flight_tell(&flying, in_flight_add(&flying, 1, MS, called), until_idle);
	assert_int_equal(atomic_load(&flying.until_idle), 2);
	sweep(false);
	assert_int_equal(flying.sum, 2 * MS);
	sweep(true);
	assert_nothing();
}

/* --- any order ---------------------------------------------------------------------------------------------------- */

static struct modelled {
	uint64_t ns;
	bool is_wide, is_there;
} model[SEEN];

static uint64_t modelled_sum(bool of_wide)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < SEEN; i++)
		sum += model[i].is_there && (model[i].is_wide || !of_wide) ? model[i].ns : 0;
	return sum;
}

static void launch_or_end(unsigned int i)
{
	if (model[i].is_there) {
		cells[i][0]++;
		model[i].is_there = false;
		sweep(false);
	} else {
		model[i] = (struct modelled){1 + some_below(MS), some_below(2) == 0, true};
		model[i].is_there =
		        in_flight_add(&flying, model[i].is_wide, model[i].ns, end_at(i, cells[i][0] + 1)) != 0;
	}
}

/* Some launches stay for long, and others come and go. The room is full while the oldest launch stays. */
TEST(any_order)
{
	for (unsigned int step = 0; step < 3000; step++) {
		ROW("step %u", step);
		launch_or_end(step % 1300 == 0 ? SEEN - 1 : some_below(SEEN - 1));
		assert_each(flying.wide, modelled_sum(true), flying.sum, modelled_sum(false));
	}
}

/* --- lengths ------------------------------------------------------------------------------------------------------ */

static struct length *find(unsigned int grid)
{
	return lengths_find(&(struct launched_work){.what = &flying, .grid = {grid, 1, 1}});
}

/* Cells of these tests have the number 5. */
static void ends(struct launch_end launch, uint64_t at)
{
	uint64_t *cell = (uint64_t *)(uintptr_t)launch.at;

	cell[1] = at + AHEAD;
	cell[0] = launch.number;
}

static void add(struct length *length, enum length_place place, struct launch_end end, struct launch_end ahead,
                uint64_t launched_ns)
{
	in_flight_learn(&flying, in_flight_add(&flying, place == LENGTH_MORE, MS, end), length, ahead, launched_ns);
}

static uint64_t look(uint64_t at)
{
	now = at;
	return in_flight_sweep(&flying, false);
}

/* On the GPU's clock alone: the time of a look does not matter. */
TEST(behind_another_one)
{
	struct length *length = find(1);
	struct launch_end ahead = end_at(0, 5), own = end_at(1, 5);

	add(length, LENGTH_MORE, own, ahead, 0);
	ends(ahead, NOW);
	assert_int_equal(look(NOW), 0);
	ends(own, NOW + 3 * MS);
	assert_int_equal(look(NOW + 9 * MS), 3 * MS);
	assert_each(lengths_ns(length, LENGTH_MORE), 3 * MS, lengths_ns(length, LENGTH_PART), 0);
	assert_nothing();
}

/* A late look does not make the next length short. */
TEST(nothing_ahead)
{
	struct length *length = find(1);

	add(length, LENGTH_PART, end_at(0, 5), none, NOW);
	ends(end_at(0, 5), NOW + 2 * MS);
	look(NOW + 2 * MS + 10 * US);
	assert_int_equal(lengths_ns(length, LENGTH_PART), 2 * MS + 10 * US);
	/* The clock stays known where the next look is late: in the same period, and in the next period. */
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t at = NOW + (10 + i * 1500) * MS;

		length = find(2 + i);
		add(length, LENGTH_PART, end_at(1 + i, 5), none, at);
		ends(end_at(1 + i, 5), at + MS);
		look(at + 10 * MS);
		assert_int_equal(lengths_ns(length, LENGTH_PART), MS + 10 * US);
	}
}

/* For a second the clock stays known, however many looks are late. */
TEST(late_looks)
{
	struct length *length = find(1);

	for (unsigned int i = 0; i < 5; i++) {
		uint64_t at = NOW + i * 240 * MS;

		add(length, LENGTH_PART, end_at(i, 5), none, at);
		ends(end_at(i, 5), at + MS);
		look(at + (i > 0 ? 10 : 1) * MS);
		assert_int_equal(lengths_ns(length, LENGTH_PART), MS);
	}
}

/* Clocks drift apart: a look of more than two seconds ago says nothing. */
TEST(clocks_that_drift)
{
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t at = NOW + i * 1100 * MS;

		add(find(1), LENGTH_PART, end_at(i, 5), none, at);
		ends(end_at(i, 5), at + MS - (uint64_t)i * 100 * US); /* the GPU's clock falls behind */
		look(at + MS);
	}
	assert_int_equal(flying.clock.ahead[0], AHEAD - 300 * US);
	assert_int_equal(flying.clock.ahead[1], AHEAD - 200 * US);
}

/* A graph ends with all work of the process. */
TEST(a_graph)
{
	struct length *length = find(1);

	add(length, LENGTH_MORE, until_idle, none, NOW);
	assert_each(look(NOW + MS), 0, lengths_ns(length, LENGTH_MORE), 0);
	now = NOW + 2 * MS;
	assert_each(in_flight_sweep(&flying, true), 2 * MS, lengths_ns(length, LENGTH_MORE), 2 * MS);
}

/* Another launch has the cell before the look. Or the launch never ran. */
TEST(an_end_that_is_lost)
{
	struct length *length = find(1);
	struct launch_end ahead = end_at(0, 5), own = end_at(1, 5);
	uint64_t ticket;

	add(length, LENGTH_MORE, own, ahead, 0);
	ends(ahead, NOW);
	ends((struct launch_end){own.at, own.number + 16}, NOW + 9 * MS);
	assert_each(look(NOW + 9 * MS), 0, lengths_ns(length, LENGTH_MORE), 0);
	own = end_at(2, 5);
	add(length, LENGTH_MORE, own, ahead, 0);
	ends((struct launch_end){ahead.at, ahead.number + 16}, NOW + 20 * MS);
	ends(own, NOW + 30 * MS);
	assert_each(look(NOW + 30 * MS), 0, lengths_ns(length, LENGTH_MORE), 0);
	ticket = in_flight_add(&flying, 1, MS, called);
	in_flight_learn(&flying, ticket, length, none, NOW);
	in_flight_tell(&flying, ticket, none);
	assert_each(look(NOW + 40 * MS), 0, lengths_ns(length, LENGTH_MORE), 0);
	assert_nothing();
}

TEST(disturbed)
{
	struct length *length = find(1);
	struct launch_end ahead = end_at(0, 5), more = end_at(1, 5), part = end_at(2, 5);

	add(length, LENGTH_MORE, more, ahead, 0);
	add(length, LENGTH_PART, part, ahead, 0);
	ends(ahead, NOW);
	in_flight_disturb(&flying);
	ends(more, NOW + MS);
	ends(part, NOW + 2 * MS);
	assert_int_equal(look(NOW + 2 * MS), 0);
	assert_each(lengths_ns(length, LENGTH_MORE), 0, lengths_ns(length, LENGTH_PART), 2 * MS);
	assert_nothing();
}

/* A lender may have waited for the longest launch with more TPCs. */
TEST(the_longest_one)
{
	add(find(1), LENGTH_MORE, end_at(1, 5), end_at(0, 5), 0);
	add(find(2), LENGTH_MORE, end_at(2, 5), end_at(0, 5), 0);
	add(find(3), LENGTH_PART, end_at(3, 5), end_at(0, 5), 0);
	ends(end_at(0, 5), NOW);
	ends(end_at(1, 5), NOW + 3 * MS);
	ends(end_at(2, 5), NOW + 2 * MS);
	ends(end_at(3, 5), NOW + 8 * MS);
	assert_int_equal(look(NOW + 8 * MS), 3 * MS);
}

RUN_TESTS(begin, NULL)
