#include "quota.h"

#include "base/extremes.h"

/* The number of looks in a period, and bounds for the time between two looks. */
#define LOOKS 100
#define LOOK_MIN_NS 500000
#define LOOK_MAX_NS 5000000

/* How long the GPU still runs a program after the request to suspend (facts.md, "Time slices"). */
#define LAG_NS 280000

static bool limits(const struct quota *quota)
{
	return quota->run_ns < quota->period_ns;
}

/* From `accounted` to `until`: `looks` of the looks at both ends saw work in flight. */
static void use(struct quota *quota, uint64_t until, bool is_suspended, unsigned int looks)
{
	uint64_t passed = until > quota->accounted ? (until - quota->accounted) * looks / 2 : 0;

	if (is_suspended)
		quota->suspended_ns += passed;
	else
		quota->present_ns += passed;
	if (!is_suspended && limits(quota) && passed > 0)
		budget_charge(quota->budget, quota->run_ns, quota->period_ns, until - passed, until);
	quota->accounted = max_u64(until, quota->accounted);
}

static void account(struct quota *quota, uint64_t now, bool wants, const struct suspension *suspension)
{
	unsigned int looks = (unsigned int)quota->wanted + wants;

	/* A launch with nothing in flight asks for a look: the work did not begin long before this look. */
	if (!quota->wanted && now > LOOK_MAX_NS)
		quota->accounted = max_u64(quota->accounted, now - LOOK_MAX_NS);
	if (suspension->since > quota->accounted && suspension->since < now)
		use(quota, suspension->since, !suspension->is_on, looks);
	use(quota, now, suspension->is_on, looks);
	quota->wanted = wants;
}

void quota_began(struct quota *quota, uint64_t time)
{
	if (!quota->wanted && time > quota->accounted) {
		quota->accounted = time;
		quota->wanted = true;
	}
}

static int64_t left(const struct quota *quota, uint64_t now)
{
	return limits(quota) ? budget_left(quota->budget, quota->run_ns, quota->period_ns, now) : INT64_MAX;
}

uint64_t quota_soonest(const struct quota *quota, uint64_t now)
{
	return limits(quota) ? now + (uint64_t)max_i64(left(quota, now) - LAG_NS, 0) : UINT64_MAX;
}

/* The last look may have seen nothing in flight, after the end of the work that spent the quota. */
uint64_t quota_spent_at(const struct quota *quota, uint64_t now)
{
	uint64_t soonest = quota->is_spent ? now : quota_soonest(quota, now);

	return soonest > now ? soonest : 0;
}

bool quota_has_room(uint64_t spent_at, uint64_t now, uint64_t in_flight, uint64_t in_flight_ns, uint64_t ns)
{
	uint64_t left = spent_at - min_u64(spent_at, now);
	bool fits = in_flight == 0 || (ns != 0 && ns <= left && in_flight_ns <= left - ns);

	return spent_at == UINT64_MAX || (spent_at != 0 && fits);
}

uint64_t quota_longest_hold(const struct quota *quota, bool is_weak)
{
	return (is_weak ? 0 : budget_longest_debt(quota->period_ns)) + (uint64_t)quota->period_ns;
}

void quota_use(struct quota *quota, int64_t run_ns, int64_t period_ns, struct budget *budget, uint64_t now)
{
	if (quota->run_ns != run_ns || quota->period_ns != period_ns || quota->budget != budget)
		quota->is_spent = false;
	quota->run_ns = run_ns;
	quota->period_ns = period_ns;
	quota->budget = budget;
	quota->accounted = max_u64(now, quota->accounted);
}

/* The GPU may have been faster than the lag: the rest of the period is not worth two calls. */
static void decide(struct quota *quota, uint64_t now)
{
	int64_t there = left(quota, now);
	uint64_t period = budget_period(quota->period_ns, now);

	if (quota->is_spent && there > LAG_NS && period != quota->spent_in)
		quota->is_spent = false;
	if (!quota->is_spent && quota->wanted && there <= LAG_NS) {
		quota->is_spent = true;
		quota->spent_in = period;
	}
}

static uint64_t choose_time(const struct quota *quota, uint64_t now)
{
	int64_t look = max_i64(LOOK_MIN_NS, min_i64(quota->period_ns / LOOKS, LOOK_MAX_NS));
	uint64_t until = now + (uint64_t)look;

	if (quota->is_spent)
		until = budget_period(quota->period_ns, now) + (uint64_t)quota->period_ns;
	else if (quota->wanted)
		until = min_u64(until, quota_soonest(quota, now));
	return until;
}

bool quota_ask(struct quota *quota, uint64_t now, bool wants, const struct suspension *suspension, uint64_t *until)
{
	account(quota, now, wants, suspension);
	*until = UINT64_MAX;
	if (limits(quota)) {
		decide(quota, now);
		*until = choose_time(quota, now);
	}
	return limits(quota) && quota->is_spent;
}
