#include "priority.h"

#include "base/extremes.h"

static void look(struct priority *priority, uint64_t now, const struct rivals *rivals)
{
	if (now - priority->looked >= PRIORITY_LOOK_NS) {
		priority->looked = now;
		priority->working += rivals->higher_wanting > 0 && priority->working < PRIORITY_LOOKS;
		priority->gaps <<= 1;
	}
	if (rivals->higher_wanting == 0 && rivals->higher_idle_ns >= PRIORITY_PAUSE_NS) {
		priority->working = 0;
		priority->gaps = 0;
	} else if (rivals->higher_wanting == 0 && rivals->higher_idle_ns >= PRIORITY_GAP_NS) {
		priority->gaps |= 1;
	}
	if (rivals->lower_wanting > 0)
		priority->shared_until = now + PRIORITY_SHARED_NS;
}

static uint64_t turn_length(const struct rivals *rivals)
{
	uint64_t higher_us = (uint64_t)PRIORITY_SLICE_FIRST_US * rivals->higher_wanting;
	uint64_t lower_us = PRIORITY_SLICE_TURN_US * (UINT64_C(1) + rivals->lower_wanting);

	return min_u64((higher_us + lower_us) * 1000, PRIORITY_PERIOD_NS / 2);
}

/* The usual slice in a turn. Before a turn as well: the slice of a suspended program costs nothing. */
static uint64_t choose_slice(const struct priority *priority, uint64_t now, bool is_as_usual,
                             const struct rivals *rivals)
{
	uint64_t slice_us = 0;

	if (rivals->has_higher && !is_as_usual)
		slice_us = now < priority->shared_until ? PRIORITY_SLICE_SHARED_US : PRIORITY_SLICE_US;
	else if (!rivals->has_higher && rivals->has_lower && rivals->equals_present == 0)
		slice_us = PRIORITY_SLICE_FIRST_US;
	return slice_us;
}

static uint64_t choose_time(uint64_t now, bool is_waiting, bool has_turn, uint64_t turn, const struct rivals *rivals)
{
	uint64_t until = UINT64_MAX, period = now - now % PRIORITY_PERIOD_NS;

	if (is_waiting)
		until = period + (has_turn ? turn : PRIORITY_PERIOD_NS);
	if (rivals->has_higher && rivals->higher_wanting == 0 && rivals->higher_idle_ns < PRIORITY_GAP_NS)
		until = min_u64(until, now + PRIORITY_GAP_NS); /* the look that sees the gap */
	return until;
}

struct rules_verdict priority_ask(struct priority *priority, uint64_t now, bool wants,
                                  const struct suspension *suspension, const struct rivals *rivals)
{
	look(priority, now, rivals);
	uint64_t turn = turn_length(rivals);
	bool has_gaps = __builtin_popcountll(priority->gaps) >= PRIORITY_GAPS;
	bool is_waiting = wants && rivals->has_higher && priority->working == PRIORITY_LOOKS && !has_gaps;
	bool has_turn = now % PRIORITY_PERIOD_NS < turn;

	return (struct rules_verdict){
		.suspends = is_waiting && !has_turn,
		.slice_us = choose_slice(priority, now, is_waiting && (has_turn || suspension->is_on), rivals),
		.until = choose_time(now, is_waiting, has_turn, turn, rivals),
	};
}
