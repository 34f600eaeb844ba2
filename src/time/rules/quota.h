/*
 * The rule of a quota: when to suspend and resume a program, for a presence of RUN in each PERIOD on the GPUs of the
 * program. Pure: the caller gives the time, in ns of a clock that never goes back.
 *
 * A program is present while work is in flight and the program is not suspended. Each period has a budget
 * (state/group/budget.h) for all members of a group: the members are suspended when the group has used up the budget,
 * and resumed in a later period. An unused rest lapses. An overdraft is taken off the next periods.
 */
#pragma once

#include "rivals.h"
#include "state/group/budget.h"

/* Members are of quota.c; other files only read the first part. */
struct quota {
	uint64_t present_ns;   /* in all */
	uint64_t suspended_ns; /* with work in flight, in all */

	int64_t run_ns, period_ns; /* RUN of a whole PERIOD is no limit: only counted */
	struct budget *budget;
	uint64_t accounted;    /* the end of the time that is charged */
	bool wanted;           /* work was in flight at `accounted` */
	bool is_spent;         /* the budget is used up */
	uint64_t spent_in;     /* the begin of the period in which the budget was used up */
};

/* Gives a program a quota, or changes the quota: earlier use is kept. */
void quota_use(struct quota *quota, int64_t run_ns, int64_t period_ns, struct budget *budget, uint64_t now);

/* `wants`: the program has work in flight. Returns whether the quota suspends the program now; `until`: when to ask
 * again at the latest. */
bool quota_ask(struct quota *quota, uint64_t now, bool wants, const struct suspension *suspension, uint64_t *until);

/* The program has had work in flight since `time`. Without effect if the last quota_ask saw work, or came later. */
void quota_began(struct quota *quota, uint64_t time);

/* The quota does not suspend the program before the returned time. */
uint64_t quota_soonest(const struct quota *quota, uint64_t now);

/* For held launches (gate/gate.h): when the quota is spent with work in flight from now on; 0: already spent;
 * UINT64_MAX: no quota. */
uint64_t quota_spent_at(const struct quota *quota, uint64_t now);

/* Whether a launch of `ns` ends before `spent_at`, behind the launches in flight; 0: unknown lengths. With nothing in
 * flight, a launch may overrun. */
bool quota_has_room(uint64_t spent_at, uint64_t now, uint64_t in_flight, uint64_t in_flight_ns, uint64_t ns);

/* The longest time, in ns, for which a launch is held back: the longest debt and one period; or one period if the
 * quota is weak, since kernels of NCCL or cooperative kernels were in flight when the quota was spent. */
uint64_t quota_longest_hold(const struct quota *quota, bool is_weak);
