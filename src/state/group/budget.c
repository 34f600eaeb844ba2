#include "budget.h"

#include "find.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- finding it ------------------------------------------------------------------------------------------------------ */

#define PAGE 4096
#define GROUP_HEADER 448

_Static_assert(GROUP_FILE_SIZE % PAGE == 0, "the last page is mapped");
_Static_assert(GROUP_HEADER + sizeof(revisions_ring) <= GROUP_FILE_SIZE - sizeof(struct budget), "behind the group's own");

struct budget *budget_open(const struct group *of, int descriptor)
{
	const struct group_lead own = {.pid = getpid(),
	                               .number = descriptor,
	                               .identity = of->identity,
	                               .user = geteuid()};
	struct group group = group_closed;
	char *page = MAP_FAILED;

	if (of->memory && !of->is_copy && group_open_of(&group, &own, GROUP_TO_CHANGE) && group.file >= 0)
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, group.file, GROUP_FILE_SIZE - PAGE);
	group_close(&group);
	return page == MAP_FAILED ? NULL : (struct budget *)(page + PAGE - sizeof(struct budget));
}

void budget_close(struct budget *budget)
{
	if (budget)
		munmap((char *)(budget + 1) - PAGE, PAGE);
}

/* --- words ----------------------------------------------------------------------------------------------------------- */

static uint64_t word_of(uint32_t period, uint32_t value)
{
	return (uint64_t)period << 32 | value;
}

static uint32_t period_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static uint32_t number_of(int64_t period_ns, uint64_t time)
{
	return (uint32_t)(time / (uint64_t)period_ns);
}

/* --- what was used --------------------------------------------------------------------------------------------------- */

/* Of the period in which they are, up to this moment: how many slots have had their middle. */
static uint32_t slots_until(int64_t period_ns, uint64_t begin, uint64_t time)
{
	return (uint32_t)(((time - begin) * 2 * BUDGET_SLOTS + (uint64_t)period_ns) / (2 * (uint64_t)period_ns));
}

/* Several processes charge and lend out of these words. Each decision is one compare-and-swap of one word, which holds all that it
 * depends on, its period included; no other memory is read because of it. So no order between words matters, on any machine. */
static void mark(_Atomic uint64_t *word, uint32_t period, uint32_t slots)
{
	uint64_t before = atomic_load(word), after;

	do {
		if (period_of(before) == period + 2)
			return;
		after = word_of(period, slots | (period_of(before) == period ? (uint32_t)before : 0));
	} while (after != before && !atomic_compare_exchange_weak(word, &before, after));
}

void budget_charge(struct budget *budget, int64_t period_ns, uint64_t from, uint64_t to)
{
	if (from >= to)
		return;
	uint64_t begin = budget_period(period_ns, to - 1);
	uint32_t period = number_of(period_ns, begin);
	uint32_t slot = slots_until(period_ns, begin, from > begin ? from : begin), end = slots_until(period_ns, begin, to);

	while (slot < end) {
		uint32_t first = slot % BUDGET_SLOTS_AT_ONCE, count = BUDGET_SLOTS_AT_ONCE - first;

		if (count > end - slot)
			count = end - slot;
		mark(&budget->slots[period % 2][slot / BUDGET_SLOTS_AT_ONCE], period, (uint32_t)((UINT64_C(1) << count) - 1) << first);
		slot += count;
	}
}

static int64_t used_of(struct budget *budget, int64_t period_ns, uint32_t period)
{
	int64_t slots = 0;

	for (size_t i = 0; i < BUDGET_SLOTS / BUDGET_SLOTS_AT_ONCE; i++) {
		uint64_t word = atomic_load(&budget->slots[period % 2][i]);

		slots += period_of(word) == period ? __builtin_popcount((uint32_t)word) : 0;
	}
	return slots * period_ns / BUDGET_SLOTS;
}

/* --- what is left ---------------------------------------------------------------------------------------------------- */

/* The allowance stands in units of so many ns, so that 10 s fit. */
#define UNIT_NS 64

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* What is left lapses at the end of a period, and what was overdrawn is taken off the next ones, but not for longer than
 * BUDGET_HORIZON_NS. Any other number is of long ago, or of periods that were longer or shorter: nothing was used since. */
static int64_t next_allowance(struct budget *budget, uint64_t word, int64_t run_ns, int64_t period_ns, uint32_t period)
{
	int64_t periods = within(BUDGET_HORIZON_NS / period_ns, 1, BUDGET_HORIZON_NS), debt = periods * run_ns;
	int64_t allowance = within((int64_t)(int32_t)(uint32_t)word * UNIT_NS, -debt, run_ns);
	uint32_t since = period - period_of(word);

	if (since == 1)
		allowance = within(allowance - used_of(budget, period_ns, period - 1), -debt, run_ns) + run_ns;
	else if (since > 1)
		allowance = since <= periods ? allowance + since * run_ns : run_ns;
	return within(allowance, -debt, run_ns);
}

int64_t budget_left(struct budget *budget, int64_t run_ns, int64_t period_ns, uint64_t now)
{
	uint32_t period = number_of(period_ns, now);
	uint64_t before = atomic_load(&budget->allowance), after;
	int64_t allowance;

	do {
		allowance = next_allowance(budget, before, run_ns, period_ns, period);
		after = word_of(period, (uint32_t)(int32_t)(allowance / UNIT_NS));
	} while (period_of(before) != period && !atomic_compare_exchange_weak(&budget->allowance, &before, after));
	return allowance - used_of(budget, period_ns, period);
}
