/* The table of lengths (src/launch/account/lengths.h). */
#include "../cases.h"

#include "launch/account/lengths.h"

#define MS UINT32_C(1000000)

FIXTURE(begin)
{
	lengths_forget();
}

static struct length *find_of(uintptr_t function, unsigned int grid)
{
	return lengths_find(&(struct launched_work){.what = (const void *)function, .grid = {grid, 1, 1}});
}

static struct length *find(unsigned int grid)
{
	return find_of(4096, grid);
}

static void note(struct length *length, enum length_place place, uint64_t ns)
{
	lengths_note(length, atomic_load(&length->key), place, ns);
}

TEST(each_has_its_own)
{
	struct length *one = find(1), *two = find(2), *other = find_of(8192, 1);

	assert_true(one != two && one != other && two != other && find(1) == one && find_of(8192, 1) == other);
	assert_each(lengths_ns(one, LENGTH_PART), 0, lengths_ns(one, LENGTH_MORE), 0);
	note(one, LENGTH_PART, 4 * MS);
	note(one, LENGTH_MORE, 3 * MS);
	assert_each(lengths_ns(one, LENGTH_PART), 4 * MS, lengths_ns(one, LENGTH_MORE), 3 * MS, lengths_ns(two, LENGTH_PART), 0);
}

TEST(each_dimension_counts)
{
	struct launched_work work = {.what = &work, .grid = {2, 3, 5}};
	struct length *length = lengths_find(&work);

	for (unsigned int i = 0; i < 3; i++) {
		struct launched_work other = work;

		other.grid[i]++;
		assert_ptr_not_equal(lengths_find(&other), length);
	}
}

TEST(a_number_finds_it_again)
{
	struct length *length = find(1);

	assert_true(lengths_number(length) < LENGTHS);
	assert_ptr_equal(lengths_at(lengths_number(length)), length);
	/* A number with more above, as in a cookie. */
	assert_ptr_equal(lengths_at(lengths_number(length) + 3 * LENGTHS), length);
}

TEST(rises_at_once_and_falls_slowly)
{
	struct length *length = find(1);

	note(length, LENGTH_MORE, 2 * MS);
	note(length, LENGTH_MORE, 8 * MS);
	assert_int_equal(lengths_ns(length, LENGTH_MORE), 8 * MS);
	note(length, LENGTH_MORE, 0);
	assert_int_equal(lengths_ns(length, LENGTH_MORE), 7 * MS + 1);
	for (unsigned int i = 0; i < 200; i++)
		note(length, LENGTH_MORE, MS);
	assert_in_range(lengths_ns(length, LENGTH_MORE), MS, MS + 8);
	note(length, LENGTH_PART, UINT64_C(5000000000));
	assert_int_equal(lengths_ns(length, LENGTH_PART), UINT32_MAX);
}

TEST(falls_by_a_part)
{
	struct length *length = find(1);

	note(length, LENGTH_PART, 8 * MS);
	note(length, LENGTH_MORE, 8 * MS);
	lengths_fall(length, 4);
	assert_each(lengths_ns(length, LENGTH_MORE), 6 * MS, lengths_ns(length, LENGTH_PART), 8 * MS);
}

/* Who noted the key of one before must not tell a new one how long that took. */
TEST(a_place_that_is_another_ones)
{
	struct length *first = find(1);
	uint64_t key = atomic_load(&first->key);

	note(first, LENGTH_PART, 7 * MS);
	atomic_store(&first->until, 5);
	for (unsigned int grid = 2; atomic_load(&first->key) == key; grid++)
		find(grid);
	assert_each(lengths_ns(first, LENGTH_PART), 0, atomic_load(&first->until), 0);
	lengths_note(first, key, LENGTH_PART, MS);
	assert_int_equal(lengths_ns(first, LENGTH_PART), 0);
}

/* As many kinds as a large program has: nearly all of them are remembered. */
TEST(a_thousand_kinds)
{
	unsigned int known = 0;

	for (unsigned int grid = 1; grid <= 1000; grid++)
		note(find(grid), LENGTH_PART, grid);
	for (unsigned int grid = 1; grid <= 1000; grid++)
		known += lengths_ns(find(grid), LENGTH_PART) == grid;
	assert_true(known >= 990);
}

/* Two kernels launch again and again. All places have lengths of old work. */
TEST(two_in_turn_in_a_full_table)
{
	unsigned int lost = 0, grid = 1;

	for (; grid <= 20 * LENGTHS; grid++)
		find(grid);
	for (unsigned int pair = 0; pair < 20000; pair++, grid += 2) {
		for (unsigned int turn = 0; turn < 8; turn++) {
			note(find(grid), LENGTH_PART, MS);
			note(find(grid + 1), LENGTH_PART, MS);
		}
		lost += lengths_ns(find(grid), LENGTH_PART) == 0 || lengths_ns(find(grid + 1), LENGTH_PART) == 0;
	}
	assert_int_equal(lost, 0);
}

RUN_TESTS(begin, NULL)
