/* How lengths are learnt (src/time/gate/samples.h), with a GPU whose clock is ahead. */
#include "../cases.h"

#include "time/gate/samples.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define AHEAD (77 * MS) /* the GPU's clock */
#define NOW (1000 * MS)

static struct samples samples;
static uint64_t cells[16][2];
static unsigned int next;

FIXTURE(begin)
{
	lengths_forget();
	memset(&samples, 0, sizeof samples);
	memset(cells, 0, sizeof cells);
	next = 0;
}

static struct length *find(unsigned int grid)
{
	return lengths_find(&(struct launched_work){.what = &samples, .grid = {grid, 1, 1}});
}

static struct launch_end a_cell(void)
{
	return (struct launch_end){cells[next++ % COUNT_OF(cells)], 5};
}

/* At this time of the processor. */
static void end(struct launch_end launch, uint64_t at)
{
	uint64_t *cell = (uint64_t *)(uintptr_t)launch.at;

	cell[1] = at + AHEAD;
	cell[0] = launch.number;
}

static void add(struct length *length, enum length_place place, struct launch_end launch, struct launch_end ahead,
                uint64_t launched_ns)
{
	const struct sample sample = {length, atomic_load(&length->key), place, launch, ahead, launched_ns};

	samples_add(&samples, &sample);
}

static const struct launch_end none = {.number = 0}, until_idle = {.number = IN_FLIGHT_UNTIL_IDLE};

/* On the GPU's clock alone: the time of a look does not matter. */
TEST(behind_another_one)
{
	struct length *length = find(1);
	struct launch_end ahead = a_cell(), own = a_cell();

	add(length, LENGTH_MORE, own, ahead, 0);
	end(ahead, NOW);
	assert_each(samples_look(&samples, false, NOW), 0, samples.count, 1);
	end(own, NOW + 3 * MS);
	assert_int_equal(samples_look(&samples, false, NOW + 9 * MS), 3 * MS);
	assert_each(samples.count, 0, lengths_ns(length, LENGTH_MORE), 3 * MS, lengths_ns(length, LENGTH_PART), 0);
}

/* A late look does not make the next length short. */
TEST(nothing_ahead)
{
	struct length *length = find(1);
	struct launch_end first = a_cell(), second = a_cell();

	add(length, LENGTH_PART, first, none, NOW);
	end(first, NOW + 2 * MS);
	samples_look(&samples, false, NOW + 2 * MS + 10 * US);
	assert_int_equal(lengths_ns(length, LENGTH_PART), 2 * MS + 10 * US);
	/* The clock stays known where the next look is late: in the same period, and in the next period. */
	for (unsigned int i = 0; i < 2; i++, second = a_cell()) {
		uint64_t at = NOW + (10 + i * 1500) * MS;

		length = find(2 + i);
		add(length, LENGTH_PART, second, none, at);
		end(second, at + MS);
		samples_look(&samples, false, at + 10 * MS);
		assert_int_equal(lengths_ns(length, LENGTH_PART), MS + 10 * US);
	}
}

/* For a second the clock stays known, however many looks are late. */
TEST(late_looks)
{
	struct length *length = find(1);

	for (unsigned int i = 0; i < 5; i++) {
		uint64_t at = NOW + i * 240 * MS;
		struct launch_end own = a_cell();

		add(length, LENGTH_PART, own, none, at);
		end(own, at + MS);
		samples_look(&samples, false, at + (i > 0 ? 10 : 1) * MS);
		assert_int_equal(lengths_ns(length, LENGTH_PART), MS);
	}
}

/* Clocks drift apart: a look of more than two seconds ago says nothing. */
TEST(clocks_that_drift)
{
	struct length *length = find(1);

	for (unsigned int i = 0; i < 4; i++) {
		uint64_t at = NOW + i * 1100 * MS;
		struct launch_end own = a_cell();

		add(length, LENGTH_PART, own, none, at);
		end(own, at + MS - (uint64_t)i * 100 * US); /* the GPU's clock falls behind */
		samples_look(&samples, false, at + MS);
	}
	assert_int_equal(samples.clock.ahead[0], AHEAD - 300 * US);
	assert_int_equal(samples.clock.ahead[1], AHEAD - 200 * US);
}

/* A graph ends with all work of the process. */
TEST(until_nothing_is_in_flight)
{
	struct length *length = find(1);

	add(length, LENGTH_MORE, until_idle, none, NOW);
	assert_each(samples_look(&samples, false, NOW + MS), 0, lengths_ns(length, LENGTH_MORE), 0);
	assert_each(samples_look(&samples, true, NOW + 2 * MS), 2 * MS, lengths_ns(length, LENGTH_MORE), 2 * MS);
}

/* Another launch has the cell before the look. */
TEST(a_cell_that_is_another_ones)
{
	struct length *length = find(1);
	struct launch_end ahead = a_cell(), own = a_cell();

	add(length, LENGTH_MORE, own, ahead, 0);
	end(ahead, NOW);
	end((struct launch_end){own.at, own.number + 16}, NOW + 9 * MS);
	assert_each(samples_look(&samples, false, NOW + 9 * MS), 0, samples.count, 0);
	assert_int_equal(lengths_ns(length, LENGTH_MORE), 0);
	own = a_cell();
	add(length, LENGTH_MORE, own, ahead, 0);
	end((struct launch_end){ahead.at, ahead.number + 16}, NOW + 20 * MS);
	end(own, NOW + 30 * MS);
	assert_each(samples_look(&samples, false, NOW + 30 * MS), 0, lengths_ns(length, LENGTH_MORE), 0);
}

TEST(those_that_had_more_are_dropped)
{
	struct length *length = find(1);
	struct launch_end ahead = a_cell(), more = a_cell(), part = a_cell();

	add(length, LENGTH_MORE, more, ahead, 0);
	add(length, LENGTH_PART, part, ahead, 0);
	end(ahead, NOW);
	samples_drop_more(&samples);
	end(more, NOW + MS);
	end(part, NOW + 2 * MS);
	assert_int_equal(samples_look(&samples, false, NOW + 2 * MS), 0);
	assert_each(lengths_ns(length, LENGTH_MORE), 0, lengths_ns(length, LENGTH_PART), 2 * MS);
}

/* A lender may have waited for the longest launch with more TPCs. */
TEST(the_longest_one)
{
	struct launch_end ahead = a_cell(), one = a_cell(), two = a_cell(), three = a_cell();

	add(find(1), LENGTH_MORE, one, ahead, 0);
	add(find(2), LENGTH_MORE, two, ahead, 0);
	add(find(3), LENGTH_PART, three, ahead, 0);
	end(ahead, NOW);
	end(one, NOW + 3 * MS);
	end(two, NOW + 2 * MS);
	end(three, NOW + 8 * MS);
	assert_int_equal(samples_look(&samples, false, NOW + 8 * MS), 3 * MS);
}

TEST(no_more_than_there_is_room_for)
{
	struct launch_end ahead = a_cell(), own = a_cell();

	for (unsigned int i = 0; i < SAMPLES_MAX + 3; i++)
		add(find(i), LENGTH_PART, own, ahead, 0);
	assert_int_equal(samples.count, SAMPLES_MAX);
	end(ahead, NOW);
	end(own, NOW + MS);
	samples_look(&samples, false, NOW + MS);
	assert_each(lengths_ns(find(0), LENGTH_PART), MS, lengths_ns(find(SAMPLES_MAX), LENGTH_PART), 0);
	assert_int_equal(samples.count, 0);
}

RUN_TESTS(begin, NULL)
