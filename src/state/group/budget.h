/*
 * The time that the members of a group share: how much of the group's quota is left in the current period. It counts the
 * time in which at least one of them is present.
 *
 * A period has slots, and each member marks those in which it was present: whoever marks a slot again changes nothing. So
 * nobody waits for anybody, and who dies in between has charged one look too little. A slot is marked by who is present in
 * its middle.
 *
 * Members that are clients of MPS share a number instead: what is left (budget_draw). A group's members are either the one or
 * the other, by how they were started; where they are not, each kind has the quota for itself.
 *
 * It lies behind what the group's memory has otherwise (group.h), and all members write it. A member that writes nonsense can
 * take away the group's quota, or some of it, for one period: the next but one begins anew; or, of clients of MPS, for as long
 * as debts are paid back.
 *
 * Periods are counted from the begin of CLOCK_MONOTONIC on, so that all members agree on them.
 */
#ifndef NVTASKSET_STATE_GROUP_BUDGET_H
#define NVTASKSET_STATE_GROUP_BUDGET_H

#include "group.h"

#include <stdatomic.h>
#include <stdint.h>

#define BUDGET_SLOTS 4096 /* of a period */
#define BUDGET_SLOTS_AT_ONCE 32

/* Words say in their upper half of which period they are, by the lower half of its number. */
struct budget {
	_Atomic uint64_t allowance; /* what there was at the begin of the period */
	_Atomic uint64_t left;      /* what members whose launches are held have left, in the period in which it was drawn last */
	_Atomic uint64_t served;    /* how much of the time the group has been served, by weight (time/rules/weight.h) */
	_Atomic uint64_t slots[2][BUDGET_SLOTS / BUDGET_SLOTS_AT_ONCE]; /* of the periods with even and odd numbers */
};

/* The budget of the group that this process is in and names by that descriptor, for budget_close. NULL if there is none, or
 * the process may not write it: a group in a file of another user's. */
struct budget *budget_open(const struct group *group, int descriptor);
void budget_close(struct budget *budget);

/* Somebody was present from `from` to `to`, in ns. Of an earlier period, only if nobody has begun a later one. */
void budget_charge(struct budget *budget, int64_t period_ns, uint64_t from, uint64_t to);

/* What is left at `now` of its period; negative if it was overdrawn. */
int64_t budget_left(struct budget *budget, int64_t run_ns, int64_t period_ns, uint64_t now);

/* What there is at the begin of a period, of what was left of the one before: TimeGraph's e = min(C, e + C) with C = RUN (Kato
 * et al., USENIX ATC 2011, 5.1). `most_ns` is RUN, or more where something may be saved up. */
static inline int64_t budget_replenish(int64_t left_ns, int64_t run_ns, int64_t most_ns)
{
	return left_ns + run_ns < most_ns ? left_ns + run_ns : most_ns;
}

/* The same where launches are held (time/gate/reserve.h), and what they have used is known when they have ended: draws
 * so much, and says what is left. What several members use at once counts for each. What was overdrawn is paid back, up
 * to `debt_ns`. */
int64_t budget_draw(struct budget *budget, int64_t run_ns, int64_t period_ns, int64_t used_ns, int64_t debt_ns, uint64_t now);

/* When the period of this moment began. */
static inline uint64_t budget_period(int64_t period_ns, uint64_t now)
{
	return now - now % (uint64_t)period_ns;
}

#endif
