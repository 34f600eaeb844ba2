/*
 * The rule of a quota: when a program is suspended and resumed, so that it is present on its GPUs for RUN in each
 * PERIOD. Pure: time is what the caller says, in nanoseconds of a clock that never goes back.
 *
 * A program is present while it has work in flight and is not suspended. Each period has a budget
 * (state/group/budget.h), which the members of a group share: they are suspended when the group has used it up, and
 * resumed in a later period. What is left lapses. What was overdrawn is taken off the next periods.
 */
#ifndef NVTASKSET_TIME_RULES_QUOTA_H
#define NVTASKSET_TIME_RULES_QUOTA_H

#include "state/group/budget.h"
#include "suspension.h"

#include <stdbool.h>
#include <stdint.h>

/* Members are quota.c's; only those of the first part are for others to read. */
struct quota {
	uint64_t present_ns;   /* in all */
	uint64_t suspended_ns; /* while it had work in flight, in all */

	int64_t run_ns, period_ns; /* RUN of a whole period is no limit: what the program uses is counted */
	struct budget *budget;
	uint64_t accounted;    /* up to this moment, */
	bool wanted;           /* at which it had work in flight */
	bool is_spent;         /* the budget is used up, */
	uint64_t spent_in;     /* in the period that began then */
};

/* A quota, or another one for a program that has one: what it has used is kept. */
void quota_use(struct quota *quota, int64_t run_ns, int64_t period_ns, struct budget *budget, uint64_t now);

/* `wants`: the program has work in flight. Returns whether the quota suspends it now; `until`: when to ask again
 * at the latest. */
bool quota_ask(struct quota *quota, uint64_t now, bool wants, const struct suspension *suspension, uint64_t *until);

/* The program has had work in flight from then on, if it had none when it was asked last. A moment before that
 * says nothing. */
void quota_began(struct quota *quota, uint64_t time);

/* Before this moment the quota does not suspend it. */
uint64_t quota_soonest(const struct quota *quota, uint64_t now);

/* The same where launches are held back (gate/gate.h): when it is spent if something is in flight from now on; 0:
 * it is; UINT64_MAX: there is none. */
uint64_t quota_spent_at(const struct quota *quota, uint64_t now);

/* Whether one that takes `ns` ends before that, behind so many kernels that take so long; 0: not known. One may
 * overrun where nothing is in flight. */
bool quota_has_room(uint64_t spent_at, uint64_t now, uint64_t in_flight, uint64_t in_flight_ns, uint64_t ns);

/* The longest time, in ns, for which a launch is held back: the longest debt and one period; or one period if the
 * quota is weak, since kernels of NCCL or cooperative kernels were in flight when the quota was spent. */
uint64_t quota_longest_hold(const struct quota *quota, bool is_weak);

#endif
