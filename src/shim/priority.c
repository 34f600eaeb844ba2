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
static void begin_wait(struct priority *priority, uint64_t now)
{
	priority->is_waiting = true;
	priority->waits_since = now;
	priority->looked = now;
	priority->gap_since = 0;
	priority->left_ns = 0;
}

/* What our thread did not see, since it did not run, says nothing. */
#define UNSEEN_NS UINT64_C(3000000)

/* Of each gap eight times its length is added, and of all other time its length is taken away. So `left_ns` grows where gaps are
 * more than a ninth of all, in the long run. */
static void see_gaps(struct priority *priority, uint64_t now, bool is_gap)
{
	uint64_t passed = now > priority->looked ? min_u64(now - priority->looked, UNSEEN_NS) : 0;

	priority->left_ns = is_gap ? priority->left_ns + 8 * passed : priority->left_ns - min_u64(passed, priority->left_ns);
	if (!is_gap)
		priority->gap_since = 0;
	else if (priority->gap_since == 0)
		priority->gap_since = now;
	priority->looked = max_u64(priority->looked, now);
}

/* As three gaps shortly after one another. */
#define LEFT_NS UINT64_C(20000000)

static bool is_pause(const struct priority *priority, uint64_t now, const struct neighbours *neighbours)
{
	return !neighbours->higher_speaks || (priority->gap_since != 0 && now - priority->gap_since >= PRIORITY_PAUSE_NS);
}

static void learn(struct priority *priority, bool was_in_vain)
{
	priority->patience_ns = was_in_vain ? min_u64(2 * priority->patience_ns, PRIORITY_PATIENCE_MOST_NS)
	                                    : max_u64(priority->patience_ns / 2, PRIORITY_PATIENCE_LEAST_NS);
}

/* Without gaps that were seen, as a pause at the end of it. */
static uint64_t waited(const struct priority *priority, uint64_t now)
{
	return (priority->gap_since != 0 ? priority->gap_since : now) - priority->waits_since;
}

static void go_on_waiting(struct priority *priority, uint64_t now, const struct neighbours *neighbours)
{
	see_gaps(priority, now, !neighbours->higher_wants);
	bool has_paused = is_pause(priority, now, neighbours), is_left = priority->left_ns >= LEFT_NS;

	priority->is_waiting = !has_paused && !is_left;
	if (!priority->is_waiting)
		learn(priority, !has_paused || waited(priority, now) < max_u64(priority->patience_ns, PRIORITY_WORTH_NS));
}

static void wait_or_not(struct priority *priority, uint64_t now, bool wants, const struct neighbours *neighbours)
{
	if (!wants)
		priority->is_waiting = false;
	else if (priority->is_waiting)
		go_on_waiting(priority, now, neighbours);
	else if (neighbours->higher_wants && !is_patient(priority, now, neighbours))
		begin_wait(priority, now);
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

static void see_rivals(struct priority *priority, uint64_t now, const struct neighbours *neighbours)
{
	if (neighbours->has_rivals)
		priority->shared_until = now + PRIORITY_SHARED_NS;
}

/* In its turns it has its usual time slice. So has it while it is aside before, which costs nobody anything. One that cannot be put
 * aside keeps short ones. */
static uint64_t choose_slice(const struct priority *priority, uint64_t now, const struct neighbours *neighbours)
{
	uint64_t slice_us = now < priority->shared_until ? PRIORITY_SLICE_SHARED_US : PRIORITY_SLICE_US;

	if (priority->is_waiting && (priority->is_aside || priority->has_turn))
		slice_us = 0;
	return neighbours->has_higher ? slice_us : 0;
}

struct priority_wish priority_step(struct priority *priority, uint64_t now, bool wants, const struct neighbours *neighbours)
{
	wait_or_not(priority, now, wants, neighbours);
	see_rivals(priority, now, neighbours);
	priority->turn_ns = turn_beside(neighbours);
	priority->has_turn = is_to_have_turn(priority, now);
	return (struct priority_wish){
		.is_aside = priority->is_waiting && !priority->has_turn,
		.slice_us = choose_slice(priority, now, neighbours),
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
