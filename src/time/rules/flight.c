#include "flight.h"

#include "base/extremes.h"

/* Lengths in the word are multiples of this. The sum has one bit more than it needs, for what is added between two launches that are
 * decided about. */
#define UNIT_NS 64
#define LONGEST_MOST UINT64_C(0xffffff) /* not known */
#define SUM_AT 24
#define SUM_MOST (UINT64_C(1) << 28)
#define NUMBER_AT 53

static uint64_t units(uint64_t ns)
{
	return min_u64(ns / UNIT_NS + (ns % UNIT_NS != 0), LONGEST_MOST);
}

static uint64_t longest_of(uint64_t word)
{
	return word & LONGEST_MOST;
}

static uint64_t sum_of(uint64_t word)
{
	return word >> SUM_AT & (2 * SUM_MOST - 1);
}

static uint64_t word_after(uint64_t before, uint64_t sum, uint64_t longest)
{
	return ((before >> NUMBER_AT) + 1) << NUMBER_AT | min_u64(sum, SUM_MOST) << SUM_AT | longest;
}

uint64_t flight_look(const struct flight_seen *seen)
{
	uint64_t longest = longest_of(seen->word), count = min_u64(seen->in_flight + seen->entering, SUM_MOST);
	uint64_t all = min_u64(sum_of(seen->word) + seen->entering * longest, count * longest);
	bool is_known = all < SUM_MOST && longest > 0 && longest < LONGEST_MOST;

	return is_known || count == 0 ? all * UNIT_NS : FLIGHT_NEVER;
}

/* Where nothing was in flight, and nobody has added anything since it was seen, all begins anew. What went before the very first one
 * is not known. */
bool flight_add(struct flight *flight, const struct flight_seen *seen, uint64_t ns, uintptr_t stream)
{
	uint64_t before = atomic_load(&flight->word), longest, sum;
	uint64_t length = longest_of(before) == 0 && seen->in_flight > 0 ? LONGEST_MOST : units(ns);

	do {
		bool is_first = before == seen->word && seen->in_flight + seen->entering == 0;

		sum = is_first ? 0 : sum_of(before);
		longest = sum == 0 ? length : max_u64(length, longest_of(before));
	} while (!atomic_compare_exchange_weak(&flight->word, &before, word_after(before, sum + length, longest)));
	if (atomic_exchange(&flight->stream, stream) != stream)
		atomic_store(&flight->since, seen->ended + seen->in_flight);
	return longest < longest_of(before);
}

uint64_t flight_more(uint64_t ns)
{
	return ns == 0 ? 0 : word_after(0, units(ns), 0);
}

void flight_add_unseen(struct flight *flight)
{
	flight_add_more(flight, word_after(0, longest_of(atomic_load(&flight->word)), 0));
}

uint64_t flight_longest(const struct flight *flight)
{
	uint64_t longest = longest_of(atomic_load(&flight->word));

	return longest < LONGEST_MOST ? longest * UNIT_NS : FLIGHT_NEVER;
}

bool flight_is_in(const struct flight *flight, const struct flight_seen *seen, uintptr_t stream)
{
	return atomic_load(&flight->stream) == stream && atomic_load(&flight->since) <= seen->ended;
}
