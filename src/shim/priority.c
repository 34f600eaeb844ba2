#include "priority.h"

#include "base/extremes.h"
#include "lag.h"

void priority_begin(struct priority *priority)
{
	*priority = (struct priority){.patience_ns = PRIORITY_PATIENCE_NS, .turn_ns = PRIORITY_TURN_NS};
}

/* --- waiting ---------------------------------------------------------------------------------------------------------- */

static bool is_patient(const struct priority *priority, uint64_t now, const struct neighbours *neighbours)
{
	return now < neighbours->higher_since || now - neighbours->higher_since <= priority->patience_ns;
}

/* A program that wants nothing while it is aside is back: so its next work begins at once. */
static bool is_to_wait(const struct priority *priority, uint64_t now, bool wants, const struct neighbours *neighbours)
{
	return wants && neighbours->higher_wants && (priority->is_waiting || !is_patient(priority, now, neighbours));
}

/* A wait is over, since a gap was seen. */
static void learn(struct priority *priority, uint64_t waited)
{
	bool was_in_vain = waited < priority->patience_ns;

	priority->patience_ns = was_in_vain ? min_u64(2 * priority->patience_ns, PRIORITY_PATIENCE_MAX_NS)
	                                    : max_u64(priority->patience_ns / 2, PRIORITY_PATIENCE_NS);
}

static void wait_or_not(struct priority *priority, uint64_t now, bool wants, const struct neighbours *neighbours)
{
	bool waits = is_to_wait(priority, now, wants, neighbours);

	if (waits && !priority->is_waiting)
		priority->waits_since = now;
	else if (!waits && priority->is_waiting && !neighbours->higher_wants)
		learn(priority, now - priority->waits_since);
	priority->is_waiting = waits;
}

/* --- turns ------------------------------------------------------------------------------------------------------------ */

/* A half of the time at most. */
static uint64_t turn_beside(const struct neighbours *neighbours)
{
	uint64_t more = neighbours->higher_wanting > 1 ? neighbours->higher_wanting - 1 : 0;

	return min_u64(PRIORITY_TURN_NS + more * PRIORITY_TURN_MORE_NS, PRIORITY_PERIOD_NS / 2);
}

static uint64_t turn_of(const struct priority *priority)
{
	return priority->changed + (priority->is_aside ? PRIORITY_PERIOD_NS - priority->turn_ns : priority->turn_ns);
}

/* It begins while the program is aside, and ends some time after that is over, whoever else wants it aside meanwhile. */
static bool is_to_have_turn(const struct priority *priority, uint64_t now)
{
	bool is_over = now >= turn_of(priority);

	return priority->is_waiting && (priority->is_aside ? is_over || priority->has_turn : priority->has_turn && !is_over);
}

/* --- deciding --------------------------------------------------------------------------------------------------------- */

static uint64_t choose_wake(const struct priority *priority, bool wants, const struct neighbours *neighbours)
{
	uint64_t wake = UINT64_MAX;

	if (priority->is_waiting && priority->is_aside != priority->has_turn)
		wake = turn_of(priority);
	else if (!priority->is_waiting && wants && neighbours->higher_wants)
		wake = neighbours->higher_since + priority->patience_ns + 1;
	return wake;
}

/* In its turns it has its usual time slice. So has it while it is aside before, which costs nobody anything. One that cannot be put
 * aside keeps short ones. */
static bool needs_short_slices(const struct priority *priority, const struct neighbours *neighbours)
{
	return neighbours->has_higher && !(priority->is_waiting && (priority->is_aside || priority->has_turn));
}

struct priority_wish priority_step(struct priority *priority, uint64_t now, bool wants, const struct neighbours *neighbours)
{
	wait_or_not(priority, now, wants, neighbours);
	priority->turn_ns = turn_beside(neighbours);
	priority->has_turn = is_to_have_turn(priority, now);
	return (struct priority_wish){
		.is_aside = priority->is_waiting && !priority->has_turn,
		.slice_us = needs_short_slices(priority, neighbours) ? PRIORITY_SLICE_US : 0,
		.until = choose_wake(priority, wants, neighbours),
	};
}

void priority_was_put_aside(struct priority *priority, uint64_t begin, uint64_t end)
{
	priority->is_aside = true;
	priority->changed = begin + lag_of_call(begin, end);
}

void priority_was_taken_back(struct priority *priority, uint64_t end)
{
	priority->is_aside = false;
	priority->changed = end;
}
