/* What it may cost to look at other processes (base/purse.h). */
#include "../cases.h"
#include "base/memfd_find.h"
#include "base/purse.h"
#include "base/shared_file.h"
#include "state/segment/layout.h"

/* The second one finds nothing left. Others' are not concerned, which another test needs other users for (hostile.bats). */
TEST(one_process_spends_all)
{
	struct purses purses = {.wait_ms = 0};

	assert_true(purses_open(&purses, getpid()));
	assert_true(purse_pay(PURSE_LOOKS_OF_USER / 2));
	assert_false(purse_pay(PURSE_LOOKS_OF_USER));
	assert_false(purse_pay(1));
	purses_close(&purses, getpid());
	assert_false(purses.is_short);
	assert_false(purses_open(&purses, getpid()));
	assert_true(purses.is_short);
	/* Nobody's purse is open. */
	assert_true(purse_pay(PURSE_LOOKS_OF_USER));
}

TEST(a_search_inside_a_search_pays_from_the_same_purse)
{
	struct purses outer = {.wait_ms = 0}, inner = {.wait_ms = 5};
	unsigned int patience = 5;

	assert_true(purses_open(&outer, getpid()));
	assert_true(purses_open(&inner, getpid()));
	assert_false(purse_wait(&patience));
	purse_pay(PURSE_LOOKS_OF_USER);
	purses_close(&inner, getpid());
	assert_false(purses_open(&inner, getpid()));
	purses_close(&outer, getpid());
	assert_false(purses_open(&outer, getpid()));
}

static bool count(int file, int number, void *context)
{
	++*(int *)context;
	return false;
}

TEST(few_files_of_one_process_are_opened)
{
	int file = shared_file_make("nvtaskset-test", 4096, NULL), opened = 0, first = file;
	struct memfd_search search = {.link = MEMFD_LINK("nvtaskset-test"), .is_sought = count, .context = &opened};

	for (int i = 0; i < 500; i++)
		file = dup(first);
	assert_int_equal(memfd_find_of(getpid(), &search), -1);
	assert_in_range(opened, 1, 64);
	search.files = 2;
	opened = 0;
	assert_int_equal(memfd_find_of(getpid(), &search), -1);
	assert_int_equal(opened, 2);
	close_range((unsigned int)first, (unsigned int)file, 0);
}

/* Of as many as there are, all locked: they are waited for once. */
TEST(locks_are_waited_for_together)
{
	struct purses purses = {.wait_ms = 3};
	int file = shared_file_make("nvtaskset-test", 4096, NULL);
	int other = open(text_of("/proc/self/fd/%d", file), O_RDWR | O_CLOEXEC);

	assert_int_equal(lock_take(other, NULL), 0);
	for (int i = 0; i < 3; i++) {
		struct error error;

		assert_true(purses_open(&purses, getpid()));
		assert_error_code(lock_take(file, &error), BUSY);
		purses_close(&purses, getpid());
		assert_int_equal(purses.wait_ms, 0);
	}
	lock_give_back(other);
	assert_int_equal(lock_take(file, NULL), 0);
	close(other);
	close(file);
}

RUN_TESTS(NULL, NULL)
