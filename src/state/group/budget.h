/*
 * The time that the members of a group share: how much of the group's quota is left in the current period. The budget
 * counts the time in which at least one member is present.
 *
 * A period has slots. Each member marks the slots in whose middle the member was present; marking a slot again changes
 * nothing. So no member waits for another, and a member that dies has charged one look too little.
 *
 * The budget lies behind the rest of the group's memory (group.h), and all members write the budget. A member that
 * writes nonsense can take away the group's quota, in whole or in part, for as long as debts are paid back.
 *
 * Periods are counted from the begin of the host's CLOCK_MONOTONIC (base/clock.h): all members agree on the periods.
 */
#pragma once

#include "group.h"

#include <stdatomic.h>

#define BUDGET_SLOTS 4096 /* of a period */
#define BUDGET_SLOTS_AT_ONCE 32

/* A debt is taken off the next periods. A debt is at most the quota of the periods in this time, of one period at
 * least: the rest is forgotten. A suspended program overdraws little; a long kernel of a program with held launches
 * goes on. */
#define BUDGET_HORIZON_NS INT64_C(2000000000)

/* In `allowance` and `slots`, the upper half of a word is the lower half of the number of the word's period. The
 * group's ledger follows the struct: add a new member at the front. */
struct budget {
	_Atomic uint64_t together;  /* the last time when a launch in flight might wait for other members (time/gate) */
	/* The time left (unit: budget.c) at the begin of the word's period, at the latest the period before now's. */
	_Atomic uint64_t allowance;
	_Atomic uint64_t served;    /* the group's used time, by weight (time/rules/weight.h) */
	_Atomic uint64_t slots[2][BUDGET_SLOTS / BUDGET_SLOTS_AT_ONCE]; /* of even and odd periods */
};

/* The budget of the process's group, named by the descriptor; for budget_close. NULL without a group, or without the
 * right to write: a group in another user's file. */
struct budget *budget_open(const struct group *group, int descriptor);
void budget_close(struct budget *budget);

/* Charges presence from `from` to `to`, in ns: each period gets its part. If another member is in a later period
 * already, the period just before that period still counts; earlier periods are over. */
void budget_charge(struct budget *budget, int64_t run_ns, int64_t period_ns, uint64_t from, uint64_t to);

/* The longest time to pay back a debt, in ns. */
uint64_t budget_longest_debt(int64_t period_ns);

/* What is left at `now` in the period of `now`; negative if overdrawn. A new `run_ns` counts from the begin of the
 * period. */
int64_t budget_left(struct budget *budget, int64_t run_ns, int64_t period_ns, uint64_t now);

/* The begin of the period of `now`. */
static inline uint64_t budget_period(int64_t period_ns, uint64_t now)
{
	return now - now % (uint64_t)period_ns;
}
