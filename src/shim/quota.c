#include "quota.h"

#include "base/extremes.h"
#include "lag.h"

/* How often a program is looked at: this often in a period, but within these bounds. */
#define LOOKS 100
#define LOOK_MIN_NS 500000
#define LOOK_MAX_NS 5000000

/* A program that has been idle for so many periods is looked at less often, down to this often in a period. */
#define IDLE_PERIODS 10
#define IDLE_LOOKS 4

/* How long it takes to begin with until the GPU has put the program aside. */
#define LAG_FIRST_NS 280000

/* A measured lag counts for one eighth: one call that waited for a CPU does not upset the next periods. */
#define LAG_SMOOTHING 8

static int64_t look_of(const struct quota *quota)
{
	return max_i64(LOOK_MIN_NS, min_i64(quota->period_ns / LOOKS, LOOK_MAX_NS));
}

/* --- accounting ------------------------------------------------------------------------------------------------------ */

/* `weight`: of two, how many looks saw the program want to run. */
static void use(struct quota *quota, uint64_t until, int weight)
{
	int64_t wanted = (int64_t)(until - quota->accounted) * weight / 2;

	if (quota->is_aside) {
		quota->aside_ns += (uint64_t)wanted;
	} else {
		quota->present_ns += (uint64_t)wanted;
		quota->left_ns -= wanted;
		if (quota->budget)
			budget_charge(quota->budget, quota->period_ns, until - (uint64_t)wanted, until);
	}
	quota->accounted = until;
}

static void replenish(struct quota *quota)
{
	quota->left_ns = budget_replenish(max_i64(quota->left_ns, -quota->run_ns), quota->run_ns, quota->run_ns);
}

/* Whole periods in which nobody looked are one: at their end all is as after two of them. */
static void account(struct quota *quota, uint64_t now, int weight)
{
	uint64_t period = (uint64_t)quota->period_ns, end = quota->period_begin + period;

	if (now < quota->accounted)
		return;
	for (int periods = 0; periods < 2 && now >= end; periods++) {
		uint64_t skipped = periods == 1 ? (now - end) / period * period : 0;

		use(quota, end + skipped, weight);
		replenish(quota);
		quota->period_begin = end + skipped;
		end = quota->period_begin + period;
	}
	use(quota, now, weight);
}

/* What the others used is not known here. */
static void ask_budget(struct quota *quota, uint64_t now)
{
	if (quota->budget) {
		quota->period_begin = budget_period(quota->period_ns, now);
		quota->left_ns = budget_left(quota->budget, quota->run_ns, quota->period_ns, now);
	}
}

static void look(struct quota *quota, uint64_t now, bool wants)
{
	account(quota, now, quota->wants + wants);
	ask_budget(quota, now);
	quota->wants = wants;
}

/* --- deciding --------------------------------------------------------------------------------------------------------- */

static uint64_t next_period(const struct quota *quota)
{
	return quota->period_begin + (uint64_t)quota->period_ns;
}

/* The GPU goes on for the lag after it was asked: so it is asked earlier. */
static void decide(struct quota *quota)
{
	bool limits = quota->run_ns < quota->period_ns;
	bool begins = limits && !quota->is_spent && quota->wants && quota->left_ns <= quota->lag_ns;
	bool ends = quota->is_spent && quota->left_ns > 0 && quota->period_begin != quota->spent_in;

	if (begins)
		quota->spent_in = quota->period_begin;
	quota->is_spent = begins || (quota->is_spent && !ends);
}

uint64_t quota_soonest(const struct quota *quota, uint64_t now)
{
	return now + (uint64_t)max_i64(quota->left_ns - quota->lag_ns, 0);
}

static uint64_t choose_wake(struct quota *quota, uint64_t now)
{
	int64_t pause = look_of(quota);

	if (quota->wants || quota->is_aside)
		quota->idle_since = now;
	if (now - quota->idle_since > IDLE_PERIODS * (uint64_t)quota->period_ns)
		pause = max_i64(quota->period_ns / IDLE_LOOKS, pause);
	if (quota->is_spent)
		return next_period(quota);
	if (quota->wants && !quota->is_aside)
		pause = min_i64(pause, (int64_t)(quota_soonest(quota, now) - now));
	return now + (uint64_t)pause;
}

void quota_begin(struct quota *quota, int64_t run_ns, int64_t period_ns, struct budget *budget, uint64_t now)
{
	quota->budget = budget;
	quota->run_ns = run_ns;
	quota->period_ns = period_ns;
	quota->period_begin = now;
	quota->left_ns = run_ns;
	quota->accounted = now;
	quota->idle_since = now;
	ask_budget(quota, now);
	if (quota->lag_ns == 0)
		quota->lag_ns = LAG_FIRST_NS;
}

bool quota_step(struct quota *quota, uint64_t now, bool wants, uint64_t *wake)
{
	look(quota, now, wants);
	decide(quota);
	*wake = choose_wake(quota, now);
	return quota->is_spent;
}

void quota_was_put_aside(struct quota *quota, uint64_t begin, uint64_t end)
{
	int64_t lag = (int64_t)lag_of_call(begin, end);

	look(quota, begin + (uint64_t)lag, quota->wants);
	/* The GPU was faster than expected: what is left is too little to be worth two calls. */
	if (quota->is_spent) {
		quota->left_ns = min_i64(quota->left_ns, 0);
		quota->spent_in = quota->period_begin;
	}
	quota->is_aside = true;
	look(quota, end, quota->wants);
	quota->lag_ns += (lag - quota->lag_ns) / LAG_SMOOTHING;
}

void quota_was_taken_back(struct quota *quota, uint64_t end)
{
	look(quota, end, quota->wants);
	quota->is_aside = false;
}
