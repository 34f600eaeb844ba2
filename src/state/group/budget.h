/*
 * The time that the members of a group share: how much of the group's quota is left in the current period. It counts the
 * time in which at least one of them is present.
 *
 * A period has slots, and each member marks those in which it was present: whoever marks a slot again changes nothing. So
 * nobody waits for anybody, and who dies in between has charged one look too little. A slot is marked by who is present in
 * its middle.
 *
 * It lies behind what the group's memory has otherwise (group.h), and all members write it. A member that writes nonsense can
 * take away the group's quota, or some of it, for as long as debts are paid back.
 *
 * Periods are counted from the begin of the host's CLOCK_MONOTONIC on (base/clock.h): all members agree on them.
 */
#ifndef NVTASKSET_STATE_GROUP_BUDGET_H
#define NVTASKSET_STATE_GROUP_BUDGET_H

#include "group.h"

#include <stdatomic.h>
#include <stdint.h>

#define BUDGET_SLOTS 4096 /* of a period */
#define BUDGET_SLOTS_AT_ONCE 32

/* What was overdrawn is taken off the next periods for so long, or one RUN off the next one. Who is suspended overdraws little; of
 * who is held at the entry of its launches, a long kernel goes on. */
#define BUDGET_HORIZON_NS INT64_C(2000000000)

/* Words say in their upper half of which period they are, by the lower half of its number. The group's ledger follows the
 * struct: a new member comes first. */
struct budget {
	_Atomic uint64_t together;  /* a member had a launch in flight then which may wait for other members (time/gate) */
	_Atomic uint64_t allowance; /* what there was at the begin of the last period but one */
	_Atomic uint64_t served;    /* how much of the time the group has been served, by weight (time/rules/weight.h) */
	_Atomic uint64_t slots[2][BUDGET_SLOTS / BUDGET_SLOTS_AT_ONCE]; /* of the periods with even and odd numbers */
};

/* The budget of the group that this process is in and names by that descriptor, for budget_close. NULL if there is none, or
 * the process may not write it: a group in a file of another user's. */
struct budget *budget_open(const struct group *group, int descriptor);
void budget_close(struct budget *budget);

/* Somebody was present from `from` to `to`, in ns. Each period counts its part, and so does the period before the one that another
 * member is in; earlier ones are over. */
void budget_charge(struct budget *budget, int64_t run_ns, int64_t period_ns, uint64_t from, uint64_t to);

/* So long it takes to pay back a debt, at most, in ns. */
uint64_t budget_longest_debt(int64_t period_ns);

/* What is left at `now` of its period; negative if it was overdrawn. Another `run_ns` counts from the begin of the period on. */
int64_t budget_left(struct budget *budget, int64_t run_ns, int64_t period_ns, uint64_t now);

/* When the period of this moment began. */
static inline uint64_t budget_period(int64_t period_ns, uint64_t now)
{
	return now - now % (uint64_t)period_ns;
}

#endif
