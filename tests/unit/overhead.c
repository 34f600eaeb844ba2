/*
 * The driver's own memory of a GPU: by the kernel driver's count of the process, or else by the difference made by
 * the first context.
 */
#include "../cases.h"

/* The kernel driver's answers, and an account. */
#define topology_read_memory fake_read_memory
#include "../../src/memory/overhead.c"
#undef topology_read_memory

#define MIB (INT64_C(1) << 20)

struct account {
	int64_t bytes;
};

static uint64_t told, told_free;
static bool is_told;
static uint64_t limit;
static int64_t managed;
static unsigned int questions;

bool fake_read_memory(struct pci_address pci, struct topology_user *users, unsigned int count, uint64_t *free_bytes)
{
	assert_each(users->pid, getpid(), count, 1);
	assert_int_equal(pci.bus, 7);
	users->bytes = told;
	*free_bytes = told_free;
	questions++;
	return is_told;
}

struct account_room account_room(struct account *account)
{
	(void)account;
	return (struct account_room){.limit = limit};
}

CUdevice account_device(const struct account *account)
{
	(void)account;
	return 7;
}

struct pci_address account_pci(const struct account *account)
{
	(void)account;
	return (struct pci_address){.bus = 7};
}

void account_change(struct account *account, int64_t bytes)
{
	account->bytes += bytes;
}

uint64_t account_bytes(struct account *account)
{
	return (uint64_t)account->bytes;
}

uint64_t holdings_managed(const struct account *account)
{
	(void)account;
	return (uint64_t)managed;
}

static struct account account;
static uint64_t calls; /* that have ended */
static bool is_quiet, one_ends_meanwhile;
static int64_t reserved_afterwards; /* by a call that begins after the question */

bool memory_is_quiet(uint64_t *number)
{
	*number = calls;
	calls += one_ends_meanwhile;
	account.bytes += questions > 0 ? reserved_afterwards : 0;
	return is_quiet;
}

FIXTURE(set_up)
{
	pointer_map_clear(&contexts);
	overhead_after_fork();
	account.bytes = 0;
	is_told = is_quiet = true;
	limit = (uint64_t)(1000000 * MIB);
	one_ends_meanwhile = false;
	questions = 0;
	managed = reserved_afterwards = 0;
}

static void make_context(uint64_t free_first, uint64_t free_then, uint64_t of_process)
{
	told = 0;
	told_free = free_first;
	overhead_context_begins(&account);
	told = of_process;
	told_free = free_then;
	overhead_context_made(&account);
}

TEST_WITH(set_up, NULL, the_kernel_driver_tells)
{
	make_context(9000 * MIB, 1000 * MIB, 500 * MIB);
	assert_int_equal(account.bytes, 500 * MIB);
	assert_int_equal(questions, 2);
	/* Memory counted otherwise is no overhead. */
	account_change(&account, 100 * MIB);
	told = 650 * MIB;
	assert_true(overhead_look(&account, true));
	assert_int_equal(account.bytes, 650 * MIB);
	account_change(&account, -100 * MIB);
	told = 540 * MIB;
	assert_true(overhead_look(&account, true));
	assert_int_equal(account.bytes, 540 * MIB);
	/* More is counted than the kernel driver sees: the count stays. */
	account_change(&account, 1000 * MIB);
	assert_true(overhead_look(&account, true));
	assert_int_equal(account.bytes, 1000 * MIB);
}

TEST_WITH(set_up, NULL, the_kernel_driver_does_not_tell)
{
	make_context(9000 * MIB, 8600 * MIB, 0);
	assert_int_equal(account.bytes, 400 * MIB);
	assert_false(overhead_look(&account, true));
	assert_int_equal(account.bytes, 400 * MIB);
	/* Only the first context counts. */
	make_context(8600 * MIB, 8000 * MIB, 0);
	assert_int_equal(account.bytes, 400 * MIB);
}

TEST_WITH(set_up, NULL, differences_that_are_others)
{
	make_context(90000 * MIB, 50000 * MIB, 0);
	assert_int_equal(account.bytes, 0);
	overhead_after_fork();
	make_context(9000 * MIB, 9100 * MIB, 0);
	assert_int_equal(account.bytes, 0);
	overhead_after_fork();
	is_told = false;
	make_context(9000 * MIB, 8600 * MIB, 0);
	assert_int_equal(account.bytes, 0);
}

/* --- ends of contexts --------------------------------------------------------------------------------------------- */

static char handles[3];

static CUcontext context(int number)
{
	return (CUcontext)(void *)&handles[number];
}

TEST_WITH(set_up, NULL, the_last_context_ends)
{
	make_context(9000 * MIB, 8600 * MIB, 0);
	overhead_context_known(context(0), 7);
	overhead_context_known(context(0), 7); /* retained */
	overhead_context_known(context(1), 7);
	overhead_context_known(context(2), 6); /* of another GPU */
	account_change(&account, 100 * MIB);
	overhead_context_ends(context(0));
	overhead_context_ends(context(0)); /* as after a fault */
	overhead_context_ends(context(2));
	assert_int_equal(account.bytes, 500 * MIB);
	overhead_context_ends(context(1));
	assert_int_equal(account.bytes, 100 * MIB);
	make_context(9000 * MIB, 8700 * MIB, 0);
	assert_int_equal(account.bytes, 400 * MIB);
}

TEST_WITH(set_up, NULL, a_context_may_be_older_than_the_library)
{
	overhead_contexts_unknown();
	make_context(9000 * MIB, 8600 * MIB, 0);
	overhead_context_known(context(0), 7);
	overhead_context_ends(context(0));
	assert_int_equal(account.bytes, 400 * MIB);
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

/* Bytes reserved by another thread may be in the kernel driver's count or not. */
TEST_WITH(set_up, NULL, not_while_others_allocate)
{
	make_context(9000 * MIB, 1000 * MIB, 500 * MIB);
	account_change(&account, 300 * MIB);
	is_quiet = false;
	assert_true(overhead_look(&account, true));
	assert_int_equal(account.bytes, 800 * MIB);
	is_quiet = one_ends_meanwhile = true;
	assert_true(overhead_look(&account, true));
	assert_int_equal(account.bytes, 800 * MIB);
	one_ends_meanwhile = false;
	assert_true(overhead_look(&account, true));
	assert_int_equal(account.bytes, 500 * MIB);
}

/* The bytes of a call that begins after the kernel driver's answer are in the books, and not in the answer. */
TEST_WITH(set_up, NULL, a_call_begins_afterwards)
{
	make_context(9000 * MIB, 1000 * MIB, 500 * MIB);
	questions = 0;
	reserved_afterwards = 300 * MIB;
	assert_true(overhead_look(&account, true));
	assert_int_equal(account.bytes, 800 * MIB);
}

static void look_at(int64_t of_process, int64_t expected)
{
	told = (uint64_t)of_process;
	assert_true(overhead_look(&account, true));
	assert_int_equal(account.bytes, expected);
}

/* As on an H200: the kernel driver counts managed memory when a kernel has touched the memory. */
TEST_WITH(set_up, NULL, managed_memory)
{
	make_context(9000 * MIB, 1000 * MIB, 500 * MIB);
	managed = 300 * MIB;
	account_change(&account, managed);
	look_at(500 * MIB, 800 * MIB);
	look_at(650 * MIB, 800 * MIB); /* half is touched */
	look_at(800 * MIB, 800 * MIB);
	look_at(900 * MIB, 900 * MIB); /* or a module was loaded */
	account_change(&account, -managed);
	managed = 0;
	look_at(500 * MIB, 500 * MIB);
}

TEST_WITH(set_up, NULL, not_more_often_than_needed)
{
	make_context(9000 * MIB, 8600 * MIB, 500 * MIB);
	questions = 0;
	for (int i = 0; i < 100; i++)
		assert_true(overhead_look(&account, false));
	assert_in_range(questions, 0, 2);
}

static void reserve(bool is_managed, unsigned int expected_questions, int64_t expected_bytes)
{
	questions = 0;
	overhead_reservation_begins(&account, is_managed);
	assert_each(questions, expected_questions, account.bytes, expected_bytes);
}

/* Each question would be a part of the program's start. */
TEST_WITH(set_up, NULL, nothing_is_asked_without_a_limit)
{
	limit = SEGMENT_MEMORY_OFF;
	reserve(false, 0, 0);
	account_change(&account, 100 * MIB);
	told = 600 * MIB;
	limit = 800 * MIB;
	reserve(false, 1, 600 * MIB); /* given live: the context counts from the next allocation on */
	reserve(false, 0, 600 * MIB);
	make_context(8600 * MIB, 8000 * MIB, 600 * MIB);
	assert_int_equal(questions, 0);
}

TEST_WITH(set_up, NULL, a_limit_comes_later_and_the_kernel_driver_does_not_tell)
{
	told = 0;
	is_quiet = false;
	reserve(false, 0, 0);
	is_quiet = true;
	reserve(false, 1, 0);
	reserve(false, 0, 0);
}

/* The kernel driver's count leaves untouched managed memory out. */
TEST_WITH(set_up, NULL, managed_memory_without_a_limit)
{
	limit = SEGMENT_MEMORY_OFF;
	told = 500 * MIB;
	reserve(true, 1, 500 * MIB);
	reserve(true, 0, 500 * MIB);
}

RUN_TESTS(NULL, NULL)
