#include "lending.h"

#include "base/extremes.h"

#define GUESS_NUMERATOR 5
#define GUESS_DENOMINATOR 4

uint64_t lending_idle_ns(struct lending_claim *claim, uint64_t launches, bool wants, uint64_t now, uint64_t long_ns)
{
	bool is_new = claim->since == 0 || claim->launches != launches ||
	              (claim->since > now && claim->since != LENDING_FOR_LONG);
	uint64_t idle_ns = 0;

	if (wants) {
		claim->since = 0;
	} else if (is_new) {
		*claim = (struct lending_claim){launches, now};
	} else {
		idle_ns = claim->since != LENDING_FOR_LONG ? now - claim->since : long_ns;
		claim->since = idle_ns >= long_ns ? LENDING_FOR_LONG : claim->since;
	}
	return idle_ns;
}

uint64_t lending_window_ns(uint64_t idle_ns, uint64_t limit_ns, uint64_t borrowers)
{
	uint64_t first_ns = lending_first_ns(limit_ns), lends_ns = idle_ns > first_ns ? idle_ns - first_ns : 0;

	return min_u64(lends_ns, limit_ns) / borrowers;
}

uint64_t lending_guess_ns(uint64_t part_ns, unsigned int part, unsigned int more)
{
	return part > 0 && more > 0 ? part_ns * part / more * GUESS_NUMERATOR / GUESS_DENOMINATOR : 0;
}
