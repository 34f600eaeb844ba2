/* What it may cost to look at other processes (base/purse.h). */
#include "../cases.h"
#include "base/memfd_find.h"
#include "base/pids.h"
#include "base/purse.h"
#include "base/shared_file.h"
#include "state/segment/layout.h"

/* The second process finds nothing left. Another test has processes of other users (hostile.bats). */
TEST(one_process_spends_all)
{
	struct purse purse = {.wait_ms = 0};

	assert_true(purse_begin(&purse, getpid()));
	assert_true(purse_pay(&purse, PURSE_LOOKS_OF_USER / 2));
	assert_false(purse_pay(&purse, PURSE_LOOKS_OF_USER));
	assert_false(purse_pay(&purse, 1));
	assert_false(purse.is_short);
	assert_false(purse_begin(&purse, getpid()));
	assert_true(purse.is_short);
	/* Without a purse, nobody pays. */
	assert_true(purse_pay(NULL, PURSE_LOOKS_OF_USER));
}

TEST(cheap_processes_cost_nothing)
{
	struct purse purse = {.wait_ms = 0};

	for (int i = 0; i < 3; i++) {
		assert_true(purse_begin(&purse, getpid()));
		assert_int_equal(purse.left, PURSE_LOOKS_OF_USER);
		purse_pay(&purse, 10);
	}
	purse_pay(&purse, 1000);
	assert_true(purse_begin(&purse, getpid()));
	assert_int_equal(purse.left, PURSE_LOOKS_OF_USER - 1010);
}

TEST(a_long_file_is_read_as_far_as_is_paid_for)
{
	struct purse purse = {.left = 3};

	assert_true(purse_find(NULL, getpid(), "maps", 1 << 20, "[stack]"));
	assert_true(purse_find(&purse, getpid(), "maps", 1 << 20, "-"));
	assert_int_equal(purse.left, 0);
	assert_false(purse_find(&purse, getpid(), "maps", 1 << 20, "-"));
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
	struct pids self = {.count = 0};
	struct purse purse = {.left = 100};

	for (int i = 0; i < 500; i++)
		file = dup(first);
	assert_int_equal(memfd_find_of(getpid(), &search, NULL), -1);
	assert_in_range(opened, 1, 64);
	search.files = 2;
	opened = 0;
	assert_int_equal(memfd_find_of(getpid(), &search, NULL), -1);
	assert_int_equal(opened, 2);
	/* A search of many processes pays from the caller's purse. */
	pids_add(&self, getpid(), NULL);
	search.files = opened = 0;
	assert_int_equal(memfd_find_among(&self, &search, &purse), -1);
	assert_in_range(opened, 1, 6);
	assert_int_equal(purse.left, 0);
	free(self.list);
	close_range((unsigned int)first, (unsigned int)file, 0);
}

/* Of as many as there are, all locked: they are waited for once. */
TEST(locks_are_waited_for_together)
{
	struct purse purse = {.wait_ms = 3};
	int file = shared_file_make("nvtaskset-test", 4096, NULL);
	int other = open(text_of("/proc/self/fd/%d", file), O_RDWR | O_CLOEXEC);

	assert_int_equal(shared_file_lock(other, NULL, NULL), 0);
	for (int i = 0; i < 3; i++) {
		struct error error;

		assert_true(purse_begin(&purse, getpid()));
		assert_error_code(shared_file_lock(file, &purse, &error), BUSY);
		assert_int_equal(purse.wait_ms, 0);
	}
	shared_file_unlock(other);
	assert_int_equal(shared_file_lock(file, NULL, NULL), 0);
	close(other);
	close(file);
}

RUN_TESTS(NULL, NULL)
