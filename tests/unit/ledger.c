/*
 * The ledger of memory: totals and shares agree, whichever process is killed at whichever step; a limit is never
 * exceeded; and a dead member's share is given back.
 */
#include "../cases.h"
#include "base/shared_file.h"
#include "state/ledger.h"

static const struct pci_address pci = {.bus = 0x3b};

static struct ledger *ledger;
static int file;

FIXTURE(make_ledger)
{
	struct error error;

	file = shared_file_make("test-ledger", sizeof *ledger, &error);
	assert_true(file >= 0);
	ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_ptr_not_equal(ledger, MAP_FAILED);
}

FIXTURE(drop_ledger)
{
	munmap(ledger, sizeof *ledger);
	close(file);
}

/* A file of the member's own, open in this process only: the lock ends with the process. */
static int open_again(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	int own = open(path, O_RDWR | O_CLOEXEC);

	assert_true(own >= 0);
	return own;
}

static uint64_t sum_of_shares(const struct ledger_gpu *gpu)
{
	uint64_t sum = 0;

	for (int slot = 0; slot < LEDGER_MEMBERS; slot++)
		sum += ledger_share(gpu, slot);
	return sum;
}

static int members(void)
{
	int count = 0;

	for (int slot = 0; slot < LEDGER_MEMBERS; slot++)
		count += ledger->members[slot].pid != 0;
	return count;
}

TEST_WITH(make_ledger, drop_ledger, one_member)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int slot = ledger_join(ledger, open_again());

	assert_true(slot >= 0);
	assert_ptr_equal(ledger_find(ledger, pci), gpu);
	assert_ptr_not_equal(ledger_find(ledger, (struct pci_address){.bus = 0x3c}), gpu);
	assert_true(ledger_change(gpu, slot, 100, 100));
	assert_false(ledger_change(gpu, slot, 1, 100));
	assert_true(ledger_change(gpu, slot, -40, 10));
	assert_each(ledger_total(gpu), 60, ledger_share(gpu, slot), 60);
	assert_int_equal(ledger_slot_of(ledger, identity_own()), slot);
	assert_true(ledger_change(gpu, slot, 40, LEDGER_UNLIMITED));
	assert_each(ledger_total(gpu), 100, ledger_share(gpu, slot), 100);
}

TEST_WITH(make_ledger, drop_ledger, numbers_that_do_not_fit)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int slot = ledger_join(ledger, -1);

	assert_int_equal(slot, 0);
	assert_false(ledger_change(gpu, slot, INT64_C(1) << 40, LEDGER_UNLIMITED));
	assert_true(ledger_change(gpu, slot, INT32_MAX, LEDGER_UNLIMITED));
	assert_true(ledger_change(gpu, slot, INT32_MAX, LEDGER_UNLIMITED));
	assert_true(ledger_change(gpu, slot, INT32_MAX, LEDGER_UNLIMITED));
	assert_int_equal(ledger_total(gpu), LEDGER_UNLIMITED - 1);
	assert_true(ledger_change(gpu, slot, INT32_MIN, LEDGER_UNLIMITED));
	assert_true(ledger_change(gpu, slot, INT32_MIN, LEDGER_UNLIMITED));
	assert_int_equal(ledger_total(gpu), 0);
}

/* --- those who die ------------------------------------------------------------------------------------------------ */

/* In a child, which ends at once. */
static void as_child(void (*body)(struct ledger_gpu *gpu, int slot))
{
	pid_t child = fork();

	if (child == 0) {
		body(ledger_find(ledger, pci), ledger_join(ledger, open_again()));
		_exit(0);
	}
	assert_ends_well(child);
}

static void take_50(struct ledger_gpu *gpu, int slot)
{
	ledger_change(gpu, slot, 50, LEDGER_UNLIMITED);
}

/* As ledger_change, up to a step. The word's layout is ledger.c's. */
static void intend_70(struct ledger_gpu *gpu, int slot)
{
	uint64_t number = (gpu->accounts[slot].share & 0xffffff) + 1;

	take_50(gpu, slot);
	gpu->accounts[slot].intent = UINT64_C(70) << 32 | (uint64_t)slot << 24 | (number + 1);
}

static void intend_and_add_70(struct ledger_gpu *gpu, int slot)
{
	intend_70(gpu, slot);
	gpu->total = ((gpu->total >> 32) + 70) << 32 | (gpu->accounts[slot].intent & UINT32_MAX);
}

static void be_refused(struct ledger_gpu *gpu, int slot)
{
	take_50(gpu, slot);
	assert_false(ledger_change(gpu, slot, 1000, 200));
}

TEST_WITH(make_ledger, drop_ledger, death_at_each_step)
{
	static void (*const deaths[])(struct ledger_gpu *gpu, int slot) = {
		take_50, intend_70, intend_and_add_70, be_refused};
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int own = open_again(), slot = ledger_join(ledger, own);

	assert_true(ledger_change(gpu, slot, 7, LEDGER_UNLIMITED));
	for (size_t i = 0; i < COUNT_OF(deaths); i++) {
		ROW("death %zu", i);
		for (int is_followed = 0; is_followed < 2; is_followed++) {
			as_child(deaths[i]);
			if (is_followed)
				assert_true(ledger_change(gpu, slot, 3, LEDGER_UNLIMITED));
			ledger_reclaim(ledger, own, slot);
			if (is_followed)
				assert_true(ledger_change(gpu, slot, -3, LEDGER_UNLIMITED));
			assert_each(ledger_total(gpu), 7, sum_of_shares(gpu), 7, (uint64_t)members(), 1);
		}
	}
}

/* From the other members: only the lock is known. */
static void hide(int slot)
{
	ledger->members[slot].namespace ^= 1;
	ledger->members[slot].pid = INT32_MAX; /* of no process */
}

/* A program closes all files, but the ledger stays mapped. */
TEST_WITH(make_ledger, drop_ledger, the_living)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int own = open_again(), other = open_again();
	void *mapped = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
	int slot = ledger_join(ledger, own);

	assert_true(ledger_change(gpu, slot, 50, LEDGER_UNLIMITED));
	ledger_reclaim(ledger, own, slot);
	hide(slot);
	close(own);
	ledger_reclaim(ledger, other, -1);
	as_child(take_50);
	ledger_reclaim(ledger, other, -1);
	assert_each(ledger_total(gpu), 50, (uint64_t)members(), 1);
	munmap(mapped, sizeof *ledger); /* as at an exec */
	ledger_reclaim(ledger, other, -1);
	assert_each(ledger_total(gpu), 0, (uint64_t)members(), 0);
}

static _Atomic uint64_t *child_of_dead(void)
{
	return &ledger->members[LEDGER_MEMBERS - 1].command;
}

static void leave_a_child(struct ledger_gpu *gpu, int slot)
{
	pid_t child = fork();

	if (child == 0)
		pause();
	*child_of_dead() = (uint64_t)child;
	take_50(gpu, slot);
}

/* A child has the lock, as after a fork unseen by our handlers. */
TEST_WITH(make_ledger, drop_ledger, the_dead_with_a_child)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);

	as_child(leave_a_child);
	ledger_reclaim(ledger, file, -1);
	assert_each(ledger_total(gpu), 0, (uint64_t)members(), 0);
	assert_int_equal(kill((pid_t)*child_of_dead(), SIGKILL), 0);
}

/* After an exec, the process gets its own slot, empty. */
TEST_WITH(make_ledger, drop_ledger, joining_again)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int own = open_again(), slot = ledger_join(ledger, own);

	assert_true(ledger_change(gpu, slot, 50, LEDGER_UNLIMITED));
	close(own);
	assert_int_equal(ledger_join(ledger, open_again()), slot);
	assert_each(ledger_total(gpu), 0, (uint64_t)members(), 1);
}

static void take_50_of_command_7(struct ledger_gpu *gpu, int slot)
{
	ledger->members[slot].command = 7;
	take_50(gpu, slot);
	_exit(ledger_change_within(gpu, slot, 60, LEDGER_UNLIMITED, ledger, 100));
}

/* Members of a command have a limit together, beside the limit of all. */
TEST_WITH(make_ledger, drop_ledger, commands)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int slot = ledger_join(ledger, open_again());

	as_child(take_50_of_command_7);
	assert_int_equal(ledger_of_command(ledger, gpu, slot), 0);
	ledger->members[slot].command = 7;
	assert_int_equal(ledger_of_command(ledger, gpu, slot), 50);
	assert_false(ledger_change_within(gpu, slot, 51, LEDGER_UNLIMITED, ledger, 100));
	assert_false(ledger_change_within(gpu, slot, 50, 99, ledger, 100));
	assert_true(ledger_change_within(gpu, slot, 50, 100, ledger, 100));
	assert_each(ledger_total(gpu), 100, ledger_of_command(ledger, gpu, slot), 100);
	assert_true(ledger_change_within(gpu, slot, -50, 0, ledger, 0));
	ledger->members[slot].command = 8;
	assert_true(ledger_change_within(gpu, slot, 100, LEDGER_UNLIMITED, ledger, 100));
	assert_int_equal(ledger_of_command(ledger, gpu, slot), 100);
}

/* --- many at once ------------------------------------------------------------------------------------------------- */

#define MOST 1000
#define WORKERS 6

/* Takes and gives all the time, until killed. */
static _Noreturn void work(unsigned int seed)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int slot = ledger_join(ledger, open_again());
	int64_t own = 0;

	for (;;) {
		int64_t change = own > 0 && rand_r(&seed) % 2 ? -own : 1 + rand_r(&seed) % 300;

		if (ledger_change(gpu, slot, change, MOST))
			own += change;
		if (ledger_total(gpu) > MOST || ledger_share(gpu, slot) != own)
			_exit(1);
	}
}

TEST_WITH(make_ledger, drop_ledger, killed_at_any_instruction)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int own = open_again(), slot = ledger_join(ledger, own);
	unsigned int seed = 1;

	for (int round = 0; round < 100; round++) {
		pid_t children[WORKERS];

		for (unsigned int i = 0; i < WORKERS; i++) {
			children[i] = fork();
			if (children[i] == 0)
				work(seed + i);
		}
		for (int i = rand_r(&seed) % 100; i > 0; i--) {
			if (ledger_change(gpu, slot, 5, MOST))
				assert_true(ledger_change(gpu, slot, -5, MOST));
			ledger_reclaim(ledger, own, slot);
			assert_true(ledger_total(gpu) <= MOST);
		}
		for (int i = 0; i < WORKERS; i++) {
			int status;

			assert_int_equal(kill(children[i], SIGKILL), 0);
			assert_int_equal(waitpid(children[i], &status, 0), children[i]);
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		}
		ledger_reclaim(ledger, own, slot);
		assert_each(ledger_total(gpu), 0, sum_of_shares(gpu), 0, (uint64_t)members(), 1);
	}
}

/* No request with room is refused: each of two wants half of the limit, again and again. */
static void *take_half(void *data)
{
	struct ledger_gpu *gpu = ledger_find(ledger, pci);
	int slot = (int)(uintptr_t)data;

	for (int i = 0; i < 100000; i++) {
		assert_true(ledger_change(gpu, slot, MOST / 2, MOST));
		assert_true(ledger_change(gpu, slot, -MOST / 2, MOST));
	}
	return NULL;
}

TEST_WITH(make_ledger, drop_ledger, none_is_refused_that_had_room)
{
	threads_run(2, take_half, (void *)1, 1);
	assert_int_equal(ledger_total(ledger_find(ledger, pci)), 0);
}

RUN_TESTS(NULL, NULL)
