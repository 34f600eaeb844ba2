#include "budget.h"

#include "base/extremes.h"
#include "base/shared_file.h"
#include "find.h"

#include <sys/mman.h>
#include <unistd.h>

/* --- opening ------------------------------------------------------------------------------------------------------ */

#define PAGE 4096

_Static_assert(GROUP_LEDGER_AT % PAGE == 0, "the page before the ledger is mapped");
_Static_assert(GROUP_RING_AT + sizeof(revisions_ring) <= GROUP_LEDGER_AT - sizeof(struct budget),
               "behind the group's own");

struct budget *budget_open(const struct group *of, int descriptor)
{
	int file = group_open_to_write(of, descriptor);
	char *page = NULL;

	if (file >= 0) {
		page = shared_file_map(file, GROUP_LEDGER_AT - PAGE, PAGE, true);
		close(file);
	}
	return page ? (struct budget *)(page + PAGE - sizeof(struct budget)) : NULL;
}

void budget_close(struct budget *budget)
{
	if (budget)
		munmap((char *)(budget + 1) - PAGE, PAGE);
}

/* --- words -------------------------------------------------------------------------------------------------------- */

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

/* --- periods ------------------------------------------------------------------------------------------------------ */

static int64_t periods_of_debt(int64_t period_ns)
{
	return max_i64(BUDGET_HORIZON_NS / period_ns, 1);
}

/* Whether the word's period comes after `period`: another member has gone on while this member got no processor. A
 * number far ahead is old, or of periods with another length. */
static bool is_later(int64_t period_ns, uint32_t of_word, uint32_t period)
{
	uint32_t ahead = of_word - period;

	return ahead > 0 && ahead <= periods_of_debt(period_ns) + 1;
}

/* --- used time ---------------------------------------------------------------------------------------------------- */

/* The number of slots with the middle before `time`, in the period that begins at `begin`. */
static uint32_t slots_until(int64_t period_ns, uint64_t begin, uint64_t time)
{
	return (uint32_t)(((time - begin) * 2 * BUDGET_SLOTS + (uint64_t)period_ns) / (2 * (uint64_t)period_ns));
}

/* Several processes charge and lend by these words. A decision is a single compare-and-swap of a word with all inputs
 * of the decision, the period included, and guards no other memory. So no order between words matters, on any
 * machine. */
static void mark(_Atomic uint64_t *word, int64_t period_ns, uint32_t period, uint32_t slots)
{
	uint64_t before = atomic_load(word), after;

	do {
		if (is_later(period_ns, period_of(before), period))
			return;
		after = word_of(period, slots | (period_of(before) == period ? (uint32_t)before : 0));
	} while (after != before && !atomic_compare_exchange_weak(word, &before, after));
}

static void mark_all(struct budget *budget, int64_t period_ns, uint64_t from, uint64_t to)
{
	uint64_t begin = budget_period(period_ns, from);
	uint32_t period = number_of(period_ns, begin);
	uint32_t slot = slots_until(period_ns, begin, from), end = slots_until(period_ns, begin, to);

	while (slot < end) {
		uint32_t first = slot % BUDGET_SLOTS_AT_ONCE, count = BUDGET_SLOTS_AT_ONCE - first;

		if (count > end - slot)
			count = end - slot;
		mark(&budget->slots[period % 2][slot / BUDGET_SLOTS_AT_ONCE], period_ns, period,
		     (uint32_t)((UINT64_C(1) << count) - 1) << first);
		slot += count;
	}
}

static int64_t used_in(struct budget *budget, int64_t period_ns, uint32_t period)
{
	int64_t slots = 0;

	for (size_t i = 0; i < BUDGET_SLOTS / BUDGET_SLOTS_AT_ONCE; i++) {
		uint64_t word = atomic_load(&budget->slots[period % 2][i]);

		slots += period_of(word) == period ? __builtin_popcount((uint32_t)word) : 0;
	}
	return slots * period_ns / BUDGET_SLOTS;
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

/* The unit of the allowance in ns: 32 bits are enough for 10 s. */
#define UNIT_NS 64

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* At the begin of `period`, from the word of an earlier period. At the end of a period, the rest lapses, and the
 * overdraft is taken off the next periods, for at most BUDGET_HORIZON_NS. */
static int64_t allowance_in(struct budget *budget, uint64_t word, int64_t run_ns, int64_t period_ns, uint32_t period)
{
	int64_t periods = periods_of_debt(period_ns), debt = periods * run_ns;
	int64_t allowance = within((int64_t)(int32_t)(uint32_t)word * UNIT_NS, -debt, run_ns);
	uint32_t at = is_later(period_ns, period_of(word), period) ? period : period_of(word);

	if (period - at > periods + 1)
		return run_ns;
	for (; at != period; at++)
		allowance = within(allowance - used_in(budget, period_ns, at), -debt, 0) + run_ns;
	return allowance;
}

/* Brings the word up to the last period: late charges of the last period still count. */
static uint64_t follow_periods(struct budget *budget, int64_t run_ns, int64_t period_ns, uint32_t period)
{
	uint64_t word = atomic_load(&budget->allowance), after;

	while (period - period_of(word) > 1 && !is_later(period_ns, period_of(word), period)) {
		after = word_of(period - 1, (uint32_t)(int32_t)(
			allowance_in(budget, word, run_ns, period_ns, period - 1) / UNIT_NS));
		if (atomic_compare_exchange_weak(&budget->allowance, &word, after))
			word = after;
	}
	return word;
}

void budget_charge(struct budget *budget, int64_t run_ns, int64_t period_ns, uint64_t from, uint64_t to)
{
	uint64_t most = (uint64_t)(periods_of_debt(period_ns) * period_ns);

	for (from = max_u64(from, to - min_u64(to, most)); from < to;) {
		uint64_t end = min_u64(to, budget_period(period_ns, from) + (uint64_t)period_ns);

		follow_periods(budget, run_ns, period_ns, number_of(period_ns, from));
		mark_all(budget, period_ns, from, end);
		from = end;
	}
}

int64_t budget_left(struct budget *budget, int64_t run_ns, int64_t period_ns, uint64_t now)
{
	uint32_t period = number_of(period_ns, now);
	uint64_t word = follow_periods(budget, run_ns, period_ns, period);

	return allowance_in(budget, word, run_ns, period_ns, period) - used_in(budget, period_ns, period);
}

uint64_t budget_longest_debt(int64_t period_ns)
{
	return (uint64_t)max_i64(BUDGET_HORIZON_NS, period_ns);
}
