/* Launches in flight (src/time/gate/in_flight.h): the sums equal the sums of a plain model, in any order of ends. */
#include "../cases.h"

#include "time/gate/in_flight.h"

#define MS UINT64_C(1000000)
#define LOOKS 40 /* by then, all ends are seen, also behind a launch that has not ended */

static struct in_flight flying;
static uint64_t cells[IN_FLIGHT_MAX];

FIXTURE(begin)
{
	memset(&flying, 0, sizeof flying);
	memset(cells, 0, sizeof cells);
	random_state = 1;
}

static struct launch_end end_at(unsigned int cell, uint64_t number)
{
	return (struct launch_end){&cells[cell], number};
}

static void sweep(bool is_idle)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		in_flight_sweep(&flying, is_idle);
}

static void assert_nothing(void)
{
	assert_each(flying.sum, 0, flying.unknown, 0, flying.added, flying.gone, atomic_load(&flying.until_idle), 0);
	for (unsigned int i = 0; i < CLAIMS_MAX; i++)
		assert_int_equal(flying.sums[i], 0);
}

TEST(in_each_claim_with_its_whole_length)
{
	in_flight_add(&flying, 5, MS, end_at(0, 1));
	in_flight_add(&flying, 4, 2 * MS, end_at(1, 1));
	in_flight_add(&flying, 0, 0, end_at(2, 1));
	assert_each(flying.sums[0], MS, flying.sums[1], 0, flying.sums[2], 3 * MS);
	assert_each(flying.sum, 3 * MS, flying.unknown, 1);
	cells[0] = 1;
	in_flight_sweep(&flying, false);
	assert_each(flying.sums[0], 0, flying.sums[2], 2 * MS, flying.sum, 2 * MS);
	cells[1] = cells[2] = 7; /* a later launch has the cell */
	in_flight_sweep(&flying, false);
	assert_nothing();
}

/* An old launch of another stream does not hide the ends of newer launches for ever. */
TEST(out_of_order)
{
	for (unsigned int i = 0; i < 4; i++)
		in_flight_add(&flying, 1, MS, end_at(i, 1));
	cells[1] = cells[3] = 1;
	sweep(false);
	assert_each(flying.sums[0], 2 * MS, flying.sum, 2 * MS);
	cells[0] = 1;
	in_flight_sweep(&flying, false);
	assert_each(flying.sums[0], MS, flying.added - flying.gone, 2);
	cells[2] = 1;
	in_flight_sweep(&flying, false);
	assert_nothing();
}

/* A look at all launches costs much: only where 32 looks in a row have seen no end. */
TEST(a_look_at_all)
{
	in_flight_add(&flying, 1, MS, end_at(0, 1));
	in_flight_add(&flying, 1, MS, end_at(1, 1));
	cells[1] = 1;
	for (unsigned int i = 0; i < 31; i++)
		in_flight_sweep(&flying, false);
	assert_int_equal(flying.sum, 2 * MS);
	in_flight_sweep(&flying, false);
	assert_int_equal(flying.sum, MS);
}

TEST(full)
{
	for (unsigned int i = 0; i < IN_FLIGHT_MAX; i++)
		assert_true(in_flight_add(&flying, 1, 1, end_at(i, 1)) != 0);
	assert_int_equal(in_flight_add(&flying, 1, 1, end_at(0, 2)), 0);
	assert_each(flying.sum, IN_FLIGHT_MAX, flying.sums[0], IN_FLIGHT_MAX);
	cells[0] = 1;
	in_flight_sweep(&flying, false);
	assert_true(in_flight_add(&flying, 1, 1, end_at(0, 2)) != 0);
	assert_int_equal(in_flight_add(&flying, 1, 1, end_at(0, 3)), 0);
}

/* Nothing ends a launch whose call goes on. Then the launch has an end, or no end, or ends with all work. */
TEST(ends_that_are_told_later)
{
	const struct launch_end called = {.number = IN_FLIGHT_CALLED}, none = {.number = 0};
	uint64_t one = in_flight_add(&flying, 1, MS, called), two = in_flight_add(&flying, 1, 2 * MS, called);

	sweep(true);
	assert_int_equal(flying.sum, 3 * MS);
	in_flight_tell(&flying, two, none);
	sweep(false);
	assert_int_equal(flying.sum, MS);
	in_flight_tell(&flying, one, end_at(0, 3));
	cells[0] = 2;
	sweep(true);
	assert_int_equal(flying.sum, MS);
	cells[0] = 3;
	sweep(false);
	assert_nothing();
}

TEST(until_nothing_is_in_flight)
{
	const struct launch_end called = {.number = IN_FLIGHT_CALLED}, until_idle = {.number = IN_FLIGHT_UNTIL_IDLE};

	in_flight_add(&flying, 1, MS, until_idle);
	in_flight_tell(&flying, in_flight_add(&flying, 1, MS, called), until_idle);
	assert_int_equal(atomic_load(&flying.until_idle), 2);
	sweep(false);
	assert_int_equal(flying.sum, 2 * MS);
	in_flight_sweep(&flying, true);
	assert_nothing();
}

/* The numbers of claims have new meanings: each wide launch counts in all claims, and a narrow launch in no claim. */
TEST(other_claims)
{
	in_flight_add(&flying, 2, MS, end_at(0, 1));
	in_flight_add(&flying, 0, 4 * MS, end_at(1, 1));
	in_flight_add(&flying, 4, 2 * MS, end_at(2, 1));
	cells[2] = 1;
	sweep(false);
	in_flight_spread(&flying);
	for (unsigned int i = 0; i < CLAIMS_MAX; i++)
		assert_int_equal(flying.sums[i], MS);
	assert_int_equal(flying.sum, 5 * MS);
	cells[0] = cells[1] = 1;
	sweep(false);
	assert_nothing();
}

/* --- any order ---------------------------------------------------------------------------------------------------- */

#define MOST 200

static struct modelled {
	uint32_t claims;
	uint64_t ns;
	bool is_there;
} model[MOST];

static uint64_t modelled_sum(uint32_t claims)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < MOST; i++)
		sum += model[i].is_there && (model[i].claims & claims) ? model[i].ns : 0;
	return sum;
}

static void launch_or_end(unsigned int i)
{
	if (model[i].is_there) {
		cells[i]++;
		model[i].is_there = false;
		sweep(false);
	} else {
		model[i] = (struct modelled){1 + some_below((1 << CLAIMS_MAX) - 1), 1 + some_below(MS), true};
		model[i].is_there = in_flight_add(&flying, model[i].claims, model[i].ns, end_at(i, cells[i] + 1)) != 0;
	}
}

/* Some launches stay for long, and others come and go. The room is full while the oldest launch stays. */
TEST(any_order)
{
	for (unsigned int step = 0; step < 3000; step++) {
		ROW("step %u", step);
		launch_or_end(step % 100 == 0 ? some_below(MOST) : some_below(MOST / 8));
		for (unsigned int i = 0; i < CLAIMS_MAX; i++)
			assert_int_equal(flying.sums[i], modelled_sum(UINT32_C(1) << i));
		assert_int_equal(flying.sum, modelled_sum(UINT32_MAX));
	}
}

RUN_TESTS(begin, NULL)
