#include "work.h"

/* A kernel without an announced launch counts at its end only, and may be in flight at any time. The count of
 * announced kernels in flight is exact without a gap. */
static bool wants(const struct demand *demand, const struct counts_of_gpu *counts, uint64_t now)
{
	bool has_moved = demand->moved != 0 && now - demand->moved < DEMAND_UNKNOWN_NS;

	return (counts->gaps == 0 && counts->in_flight > 0) || (!demand->is_known && has_moved);
}

void demand_note(struct demand *demand, uint64_t now, const struct counts_of_gpu *counts)
{
	bool is_first = demand->looked == 0;
	bool moves = counts->launched != demand->launched || counts->ended != demand->ended;
	bool was_idle = !is_first && !demand->wants && !moves;

	demand->is_known = counts->gaps == 0 && counts->unheard == 0;
	if (moves && !is_first)
		demand->moved = now;
	demand->launched = counts->launched;
	demand->ended = counts->ended;
	demand->in_flight = counts->in_flight;
	demand->wants = wants(demand, counts, now);
	if (!was_idle || demand->wants)
		demand->idle_since = now;
	if (is_first || !demand->wants)
		demand->paused = now;
	demand->looked = now;
	if (now - demand->recorded >= DEMAND_LOOK_NS) {
		demand->history = (uint8_t)(demand->history << 1 | demand->wants);
		demand->recorded = now;
	}
}
