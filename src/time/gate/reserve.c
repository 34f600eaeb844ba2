#include "reserve.h"

#include "base/extremes.h"

/* Debt is paid back within so long, or so many times what the launch used that made it. */
#define HORIZON_NS INT64_C(10000000000)
#define HORIZON_LAUNCHES 20

static int64_t whole(int64_t amount, int64_t unit)
{
	return amount > 0 ? (amount - 1) / unit + 1 : 0;
}

/* --- replenishment ------------------------------------------------------------------------------------------------ */

/* What may be owed: so much is paid back within the horizon. */
static int64_t debt_of(const struct reserve *reserve, int64_t used)
{
	return max_i64(HORIZON_NS / reserve->period_ns * reserve->run_ns, HORIZON_LAUNCHES * used);
}

/* Not beyond the most that is paid back; what was overdrawn before is not forgiven by it. */
static void draw(struct reserve *reserve, int64_t used, uint64_t now)
{
	int64_t debt = debt_of(reserve, used);

	if (reserve->budget)
		reserve->left_ns = budget_draw(reserve->budget, reserve->run_ns, reserve->period_ns, used, debt, now);
	else
		reserve->left_ns = max_i64(reserve->left_ns - used, min_i64(reserve->left_ns, -debt));
}

/* At the end of several periods, all is as if somebody had looked in each. */
static void replenish(struct reserve *reserve, uint64_t now)
{
	int64_t periods = now > reserve->period_begin ? (int64_t)(now - reserve->period_begin) / reserve->period_ns : 0;

	if (periods > 0) {
		reserve->left_ns = budget_replenish(reserve->left_ns, periods * reserve->run_ns, reserve->run_ns);
		reserve->period_begin += (uint64_t)(periods * reserve->period_ns);
	}
}

static void catch_up(struct reserve *reserve, uint64_t now)
{
	if (reserve->budget) {
		reserve->period_begin = budget_period(reserve->period_ns, now);
		draw(reserve, 0, now);
	} else {
		replenish(reserve, now);
	}
}

void reserve_share(struct reserve *reserve, struct budget *budget)
{
	reserve->budget = budget;
}

void reserve_begin(struct reserve *reserve, int64_t run_ns, int64_t period_ns, uint64_t now)
{
	reserve->run_ns = run_ns;
	reserve->period_ns = period_ns;
	reserve->period_begin = budget_period(period_ns, now);
	reserve->left_ns = run_ns;
}

uint64_t reserve_next_period(const struct reserve *reserve, uint64_t now)
{
	uint64_t next = reserve->period_begin + (uint64_t)reserve->period_ns;

	if (now >= next)
		next += (now - reserve->period_begin) / (uint64_t)reserve->period_ns * (uint64_t)reserve->period_ns;
	return next;
}

/* --- room --------------------------------------------------------------------------------------------------------- */

struct reserve_launch reserve_launch(const struct reserve *reserve)
{
	return (struct reserve_launch){.needs_ns = reserve->longest_ns > 0 ? reserve->longest_ns : reserve->run_ns};
}

/* Of late: one that was long counts less with each that is shorter. */
static void note_length(struct reserve *reserve, int64_t used_ns)
{
	if (used_ns > 0)
		reserve->longest_ns = max_i64(used_ns, reserve->longest_ns - reserve->longest_ns / 8);
}

/* What those that wait before it speak for. */
static int64_t ahead_of(const struct reserve *reserve, const struct reserve_launch *launch)
{
	return max_i64((launch->waits ? launch->place : reserve->queued_ns) - reserve->served_ns, 0);
}

/* What must be left for it. Only the first one may overrun. */
static int64_t need_of(const struct reserve *reserve, const struct reserve_launch *launch)
{
	return ahead_of(reserve, launch) == 0 ? 1 : launch->needs_ns;
}

bool reserve_has_room(struct reserve *reserve, const struct reserve_launch *launch, uint64_t now)
{
	int64_t ahead = ahead_of(reserve, launch);

	catch_up(reserve, now);
	return reserve->left_ns - reserve->in_flight_ns - ahead >= need_of(reserve, launch);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

/* Begins of periods until there is room. With others it is an upper bound: those in flight may be charged only after e
 * was cut to C for the last time; and of those that wait before it, each may leave unused what it does not fit into, be
 * in flight when a period ends, and leave unused what the next one does not fit into. */
static int64_t periods_until_room(const struct reserve *reserve, const struct reserve_launch *launch)
{
	int64_t in_flight = reserve->in_flight_ns, ahead = ahead_of(reserve, launch);
	int64_t lacking = need_of(reserve, launch) - reserve->left_ns, periods;

	if (in_flight == 0 && ahead == 0) {
		periods = whole(lacking, reserve->run_ns);
	} else {
		lacking = need_of(reserve, launch) - min_i64(reserve->left_ns, 0) + in_flight + 3 * ahead;
		periods = whole(in_flight, reserve->period_ns) + whole(lacking, reserve->run_ns);
	}
	return max_i64(periods, 1);
}

static void queue_up(struct reserve *reserve, struct reserve_launch *launch)
{
	launch->place = reserve->queued_ns;
	launch->waits = true;
	reserve->queued_ns += launch->needs_ns;
}

static void wait_no_more(struct reserve *reserve, struct reserve_launch *launch)
{
	if (launch->waits)
		reserve->served_ns += launch->needs_ns;
	launch->waits = false;
}

uint64_t reserve_wait(struct reserve *reserve, struct reserve_launch *launch, uint64_t now)
{
	catch_up(reserve, now);
	uint64_t until = reserve->period_begin + (uint64_t)(periods_until_room(reserve, launch) * reserve->period_ns);

	queue_up(reserve, launch);
	return until;
}

/* --- going -------------------------------------------------------------------------------------------------------- */

void reserve_go(struct reserve *reserve, struct reserve_launch *launch, uint64_t now)
{
	catch_up(reserve, now);
	wait_no_more(reserve, launch);
	launch->went = now;
	reserve->in_flight_ns += launch->needs_ns;
}

void reserve_forget(struct reserve *reserve, int64_t needs_ns)
{
	reserve->served_ns += needs_ns;
}

void reserve_ended(struct reserve *reserve, const struct reserve_launch *launch, uint64_t used_ns, uint64_t now)
{
	uint64_t since = now > launch->went ? now - launch->went : 0;

	catch_up(reserve, now);
	reserve->in_flight_ns -= launch->needs_ns;
	used_ns = used_ns < since ? used_ns : since;
	draw(reserve, (int64_t)used_ns, now);
	note_length(reserve, (int64_t)used_ns);
	reserve->used_ns += used_ns;
}
