/*
 * A launch of a lender wakes borrowers (src/launch/space/bells.h).
 *
 * link: -Wl,--wrap=futex_wake
 */
#include "../cases.h"
#include "base/futex.h"
#include "launch/space/bells.h"
#include "launch/space/epoch.h"
#include "state/segment/segment.h"

#define BORROWERS (BELLS + 1)

static _Atomic uint64_t openings[BORROWERS];
static _Atomic uint32_t rings[BORROWERS];
static unsigned int wakes[BORROWERS];

WRAP(void, futex_wake, _Atomic uint32_t *word, int count)
{
	wakes[word - rings]++;
	assert_int_equal(count, 1);
}

static struct bell list[BORROWERS];
static _Atomic uint64_t edits;

static void set(unsigned int first, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		list[i] = (struct bell){&openings[first + i], &rings[first + i]};
	bells_set(list, count);
}

FIXTURE(begin)
{
	epoch_sources = (struct epoch_sources){.edits = &edits, .group_edits = &edits};
	for (unsigned int i = 0; i < BORROWERS; i++) {
		list[i] = (struct bell){&edits, &rings[i]}; /* nothing was heard of the bells of a test */
		atomic_store(&openings[i], 0);
		wakes[i] = 0;
	}
	bells_set(list, BORROWERS);
	bells_set(NULL, 0);
}

TEST(once_for_each_number)
{
	set(0, 1);
	bells_ring();
	assert_int_equal(wakes[0], 0);
	for (unsigned int number = 1; number <= 3; number++) {
		atomic_store(&openings[0], number);
		bells_ring();
		bells_ring();
		assert_int_equal(wakes[0], number);
	}
}

TEST(each_borrower_by_itself)
{
	set(0, 3);
	atomic_store(&openings[1], 1);
	bells_ring();
	assert_int_equal(wakes[0], 0);
	assert_int_equal(wakes[1], 1);
	assert_int_equal(wakes[2], 0);
}

/* Our thread sets the same bells again and again. */
TEST(the_same_again)
{
	set(0, 2);
	atomic_store(&openings[0], 5);
	bells_ring();
	set(0, 2);
	bells_ring();
	assert_int_equal(wakes[0], 1);
}

TEST(in_place_of_another_borrower)
{
	set(0, 1);
	atomic_store(&openings[0], 5);
	atomic_store(&openings[1], 5);
	bells_ring();
	set(1, 1);
	bells_ring();
	assert_int_equal(wakes[0], 1);
	assert_int_equal(wakes[1], 1);
}

TEST(a_borrower_that_has_gone)
{
	set(0, 2);
	set(0, 1);
	atomic_store(&openings[1], 1);
	bells_ring();
	assert_int_equal(wakes[1], 0);
}

TEST(too_many)
{
	set(0, BORROWERS);
	for (unsigned int i = 0; i < BORROWERS; i++)
		atomic_store(&openings[i], 1);
	bells_ring();
	assert_int_equal(wakes[BELLS - 1], 1);
	assert_int_equal(wakes[BELLS], 0);
}

/* A decision about launches says whether there are bells. */
TEST(the_first_and_the_last_one_raise_the_epoch)
{
	uint64_t before = epoch_now();

	set(0, 1);
	assert_true(bells_are_there());
	uint64_t first = epoch_now();

	assert_true(first > before);
	set(0, 2);
	assert_int_equal(epoch_now(), first);
	set(0, 0);
	assert_false(bells_are_there());
	assert_true(epoch_now() > first);
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
