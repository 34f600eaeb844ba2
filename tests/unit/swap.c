/*
 * A word is replaced only as long as the guard is unchanged, at whatever instruction the thread is interrupted.
 *
 * sanitizers: no
 */
#include "steps.h"

#include "../../src/driver/pushbuffer/swap.c"

#define STEPS 100 /* more than there are up to the store */
#define OLD 5
#define NEW 9

static struct shared {
	volatile uint64_t guard;
	volatile uint32_t word;
	enum swap_outcome outcome;
} *shared;

static enum swap_outcome swap(void)
{
	return swap_while(&shared->guard, 1, &shared->word, OLD, NEW);
}

FIXTURE(set_up)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	shared->guard = 1;
	shared->word = OLD;
}

TEST(outcomes)
{
	if (!swap_prepare())
		skip_because("this machine has no restartable sequences");
	assert_each(swap(), SWAP_DONE, shared->word, NEW);
	assert_each(swap(), SWAP_OTHER_WORD, shared->word, NEW);
	shared->guard = 2;
	shared->word = OLD;
	assert_each(swap(), SWAP_GUARD_CHANGED, shared->word, OLD);
}

#if defined(__x86_64__)
/* The kernel would look into a library that is gone. */
TEST(nothing_of_ours_stays_with_the_thread)
{
	if (!swap_prepare())
		skip_because("this machine has no restartable sequences");
	for (uint64_t guard = 1; guard <= 2; guard++) {
		shared->guard = guard;
		swap();
		assert_int_equal(own_area()->sequence, 0);
	}
}
#endif

static void swap_in_child(void)
{
	shared->outcome = swap();
}

/* The memory is used again, with the same word. */
TEST(the_guard_changes_at_any_instruction)
{
	if (!swap_prepare())
		skip_because("this machine has no restartable sequences");
	for (unsigned int place = 0; place < STEPS; place++) {
		ROW("place %u", place);
		shared->guard = 1;
		shared->word = OLD;
		pid_t child = steps_start(swap_in_child);

		assert_true(steps_take(child, place));
		assert_int_equal(shared->word, OLD);
		shared->guard = 2;
		steps_finish(child);
		assert_each(shared->outcome, SWAP_GUARD_CHANGED, shared->word, OLD);
	}
}

RUN_TESTS(set_up, NULL)
