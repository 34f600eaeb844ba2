/* How long launches take, as they are seen to end, by the test's clock. */
/* link: -Wl,--wrap=process_clock_ns */
#include "../cases.h"

#include "base/clock.h"
#include "launch/account/lengths.h"

#define MS UINT64_C(1000000)
#define LIMIT (1000 * MS)
#define OPEN (UINT64_C(6) << 32 | 1)

static struct measure measure;
static uint64_t now = MS;

uint64_t __wrap_process_clock_ns(void);
uint64_t __wrap_process_clock_ns(void)
{
	return now;
}

FIXTURE(begin)
{
	atomic_store(&lengths_turn, 0);
	lengths_forget();
	memset(&measure, 0, sizeof measure);
}

static struct length *find(unsigned int grid)
{
	return lengths_find(&(struct launched_work){.what = &measure, .grid = {grid, 1, 1}});
}

static bool begins(struct length *length, enum length_place place, bool is_tried)
{
	const struct measured launch = {length, place, .stream = 7, is_tried, OPEN};

	return measure_begin(&measure, &launch, 3);
}

/* It ends after so long, and somebody looks each 10 us, or only then. */
static void run(struct length *length, enum length_place place, uint64_t ns, bool is_looked_at)
{
	uint64_t end = now + ns;

	atomic_fetch_add(&lengths_turn, 1);
	assert_true(begins(length, place, false));
	for (; is_looked_at && now < end; now += MS / 100)
		measure_look(&measure, 3, 1, OPEN);
	now = end;
	measure_look(&measure, 4, 0, OPEN);
	assert_false(atomic_load(&measure.is_on));
}

static void try_again(struct length *length, uint64_t ns)
{
	assert_true(begins(length, LENGTH_MORE, true));
	now += ns;
	measure_look(&measure, 4, 0, OPEN);
}

static uint64_t in_part(const struct length *length)
{
	return lengths_longest(length, LENGTH_PART);
}

static bool is_new;

/* On twice as many TPCs. */
static uint64_t in_more(const struct length *length, uint64_t limit)
{
	return lengths_of(length, 2, 4, limit, &is_new);
}

static bool wants_to_be_alone(const struct length *length)
{
	in_more(length, LIMIT);
	return is_new;
}

TEST(each_has_its_own)
{
	struct length *one = find(1), *two = find(2);

	assert_true(one != two && find(1) == one);
	assert_int_equal(in_more(one, LIMIT), 0);
	run(one, LENGTH_PART, 4 * MS, false);
	assert_each(in_part(one), 4 * MS, in_part(two), 0);
}

/* Until it has been there, it is taken to be as much faster as there are more TPCs; and runs alone then. */
TEST(two_places)
{
	struct length *length = find(1);

	run(length, LENGTH_PART, 8 * MS, false);
	assert_int_equal(in_more(length, LIMIT), 4 * MS);
	assert_true(is_new);
	run(length, LENGTH_MORE, 6 * MS, false);
	assert_int_equal(in_more(length, LIMIT), 6 * MS);
	assert_false(is_new);
	/* Longer than it may: it is tried again at once. */
	assert_int_equal(in_more(length, 5 * MS), 4 * MS);
	assert_true(is_new);
	/* Once in a turn, whatever comes of it. */
	assert_true(begins(length, LENGTH_MORE, true));
	measure_drop(&measure);
	assert_int_equal(in_more(length, 5 * MS), 6 * MS);
	assert_false(is_new);
	/* What it took before is forgotten then. */
	atomic_fetch_add(&lengths_turn, 1);
	assert_int_equal(in_more(length, 5 * MS), 4 * MS);
	try_again(length, 3 * MS);
	assert_int_equal(in_more(length, 5 * MS), 3 * MS);
}

/* What was too long for once is tried again in the next turn. If it is too long then as well, after twice as many, up to eight; once it
 * was not, in the next one. */
TEST(late_for_once)
{
	struct length *length = find(1);

	run(length, LENGTH_PART, 4 * MS, false);
	run(length, LENGTH_MORE, 2 * MS, true);
	run(length, LENGTH_MORE, 6 * MS, true);
	assert_int_equal(in_more(length, 3 * MS), 6 * MS);
	for (uint32_t turns = 1; turns <= 16; turns *= 2) {
		atomic_fetch_add(&lengths_turn, (turns < 8 ? turns : 8) - 1);
		assert_int_equal(in_more(length, 3 * MS), 6 * MS);
		atomic_fetch_add(&lengths_turn, 1);
		assert_int_equal(in_more(length, 3 * MS), 2 * MS);
		assert_true(is_new);
		try_again(length, 6 * MS);
	}
	atomic_fetch_add(&lengths_turn, 8);
	try_again(length, 2 * MS);
	run(length, LENGTH_MORE, 6 * MS, true);
	atomic_fetch_add(&lengths_turn, 1);
	assert_int_equal(in_more(length, 3 * MS), 2 * MS);
}

/* In its own part, others had disturbed one: it is tried again all the same. */
TEST(disturbed_in_part)
{
	struct length *length = find(1);

	run(length, LENGTH_PART, 4 * MS, true);
	run(length, LENGTH_PART, 9 * MS, true);
	run(length, LENGTH_MORE, 6 * MS, true);
	assert_int_equal(in_more(length, 3 * MS), 2 * MS);
	assert_true(is_new);
}

/* The longest of four. An end that is seen late says only what is longer than what is known. */
TEST(of_late)
{
	struct length *length = find(1);

	run(length, LENGTH_PART, 2 * MS, true);
	assert_int_equal(in_part(length), 2 * MS);
	for (int i = 0; i < 4; i++)
		run(length, LENGTH_PART, 20 * MS, false);
	assert_int_equal(in_part(length), 2 * MS);
	run(length, LENGTH_PART, 20 * MS, true);
	assert_int_equal(in_part(length), 20 * MS);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(in_part(length), 20 * MS);
		run(length, LENGTH_PART, 4 * MS, true);
	}
	assert_int_equal(in_part(length), 4 * MS);
}

/* By another stream's launch; not by one behind it in its own. */
TEST(disturbed)
{
	struct length *length = find(1);

	assert_true(begins(length, LENGTH_PART, false));
	measure_disturb(&measure, 7);
	assert_true(atomic_load(&measure.is_on));
	measure_disturb(&measure, 8);
	measure_look(&measure, 4, 0, OPEN);
	assert_int_equal(in_part(length), 0);
}

/* An owner has launched meanwhile: in its TPCs, that makes it longer; not another one. */
TEST(shared)
{
	static const uint64_t others[] = {OPEN - 1, OPEN + (UINT64_C(1) << 32)};
	struct length *length = find(1);

	for (size_t i = 0; i < COUNT_OF(others); i++) {
		assert_true(begins(length, LENGTH_MORE, false));
		assert_int_equal(measure_look(&measure, 3, 1, others[i]), 0);
		assert_false(atomic_load(&measure.is_on));
		assert_int_equal(lengths_longest(length, LENGTH_MORE), 0);
	}
	assert_true(begins(length, LENGTH_MORE, false));
	now += MS;
	measure_look(&measure, 4, 0, OPEN | 2);
	assert_int_equal(lengths_longest(length, LENGTH_MORE), MS);
	assert_true(begins(length, LENGTH_PART, false));
	now += MS;
	measure_look(&measure, 4, 0, 0);
	assert_int_equal(in_part(length), MS);
}

/* One in each turn. What is not known yet asks for it once in each, but for the first one; and in all where it is alone. */
TEST(measured_again)
{
	struct length *length = find(1);

	assert_false(wants_to_be_alone(length));
	assert_true(begins(length, LENGTH_PART, false));
	measure_drop(&measure);
	atomic_fetch_add(&lengths_turn, 1);
	assert_true(wants_to_be_alone(length));
	lengths_miss();
	assert_false(wants_to_be_alone(length));
	assert_false(wants_to_be_alone(find(2)));
	atomic_fetch_add(&lengths_turn, 7);
	assert_false(wants_to_be_alone(length));
	atomic_fetch_add(&lengths_turn, 1);
	assert_true(wants_to_be_alone(length));
	run(length, LENGTH_PART, MS, false);
	run(length, LENGTH_PART, MS, true);
	assert_false(begins(length, LENGTH_PART, false));
	atomic_fetch_add(&lengths_turn, 1);
	run(length, LENGTH_PART, MS, false);
	assert_false(begins(length, LENGTH_PART, false));
}

/* The first one may have loaded its function: another one follows in the same turn, and counts alone if it is shorter. */
TEST(first_ones)
{
	for (unsigned int ms = 1; ms <= 9; ms += 4) {
		struct length *length = find(ms);

		run(length, LENGTH_PART, 5 * MS, true);
		assert_true(begins(length, LENGTH_PART, false));
		now += ms * MS;
		measure_look(&measure, 4, 0, OPEN);
		run(length, LENGTH_PART, ms * MS, true);
		assert_int_equal(in_part(length), ms * MS);
		run(length, LENGTH_PART, 2 * ms * MS, true);
		run(length, LENGTH_PART, ms * MS, true);
		assert_int_equal(in_part(length), 2 * ms * MS);
	}
}

/* An end that may be another kernel's, since something is still in flight, makes no length shorter. */
TEST(stray_end)
{
	struct length *length = find(1);

	run(length, LENGTH_PART, 5 * MS, true);
	assert_true(begins(length, LENGTH_PART, false));
	now += MS / 100;
	measure_look(&measure, 4, 1, OPEN);
	assert_false(atomic_load(&measure.is_on));
	assert_int_equal(in_part(length), 5 * MS);
}

/* Not again and again where its end is seen late. */
TEST(second_once)
{
	struct length *length = find(1);

	run(length, LENGTH_PART, MS, true);
	assert_true(begins(length, LENGTH_PART, false));
	now += MS;
	measure_look(&measure, 4, 0, OPEN);
	assert_false(begins(length, LENGTH_PART, false));
}

/* Nobody knows when in its call it went: if that was long, only what came after it counts, where that is more than is known. */
TEST(long_calls)
{
	static const unsigned int after[] = {1, 6, 3};
	static const unsigned int known[] = {2, 6, 6};
	struct length *length = find(1);

	run(length, LENGTH_PART, 2 * MS, true);
	run(length, LENGTH_PART, 2 * MS, true);
	for (size_t i = 0; i < COUNT_OF(after); i++) {
		atomic_fetch_add(&lengths_turn, 1);
		assert_true(begins(length, LENGTH_PART, false));
		now += 8 * MS;
		measure_called(&measure);
		measure_look(&measure, 3, 1, OPEN);
		now += after[i] * MS;
		measure_look(&measure, 3, 1, OPEN);
		measure_look(&measure, 4, 0, OPEN);
		assert_int_equal(in_part(length), known[i] * MS);
	}
}

TEST(those_that_wait_for_others)
{
	struct length *length = lengths_find(&(struct launched_work){.what = &measure, .waits_for_others = true});

	assert_true(in_more(length, LIMIT) == LENGTH_NONE);
	assert_false(is_new);
	assert_false(begins(length, LENGTH_PART, false));
}

RUN_TESTS(begin, NULL)
