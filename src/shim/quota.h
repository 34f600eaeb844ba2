/*
 * The rules of a quota: when a program is put aside and taken back, so that it is present on its GPUs for at most RUN in each
 * PERIOD. Pure: time is what the caller says, in nanoseconds of a clock that never goes back.
 *
 * A program is present while it wants to run, and is not put aside. What it may use, C = RUN, comes at the begin of each
 * period: e = min(C, e + C), as TimeGraph's budgets do (Kato et al., USENIX ATC 2011). So what is left lapses, and what was
 * overdrawn is paid back, but never more than one RUN: the rest was not the program's fault, but a thread's that did not
 * run.
 *
 * The members of a group share what there is (state/budget.h): a member is put aside when the group has used it up, and is
 * back in a later period. What is left and when periods begin is then the same for all of them.
 */
#ifndef NVTASKSET_SHIM_QUOTA_H
#define NVTASKSET_SHIM_QUOTA_H

#include "state/budget.h"

#include <stdbool.h>
#include <stdint.h>

/* Members are quota.c's; only those of the first part are for others to read. */
struct quota {
	bool is_aside;       /* the program, whoever wanted it so */
	uint64_t present_ns; /* in all */
	uint64_t aside_ns;   /* while it wanted to run, in all */

	int64_t run_ns, period_ns;
	uint64_t period_begin;
	int64_t left_ns;       /* of this period; negative: overdrawn */
	uint64_t accounted;    /* up to this moment */
	bool wants;            /* at that moment */
	struct budget *budget; /* the group's; NULL: what is left is this program's alone */
	bool is_spent;         /* it has used what there was, and is to be aside until a later period */
	uint64_t spent_in;     /* the begin of that period */
	int64_t lag_ns;        /* from asking for it until the GPU has put the program aside */
	uint64_t idle_since;   /* the last moment at which it wanted to run */
};

/* A new quota, or another one for a program that has one: what it has used is kept, and it begins a period, unless it is
 * shared. `budget` may be NULL. Where RUN is a whole period it is no limit: what the program used is counted. */
void quota_begin(struct quota *quota, int64_t run_ns, int64_t period_ns, struct budget *budget, uint64_t now);

/* The program wants to run, or does not. Returns whether it is to be aside now; `wake`: when to call this again at the
 * latest. */
bool quota_step(struct quota *quota, uint64_t now, bool wants, uint64_t *wake);

/* Before this moment it will not be wanted aside. */
uint64_t quota_soonest(const struct quota *quota, uint64_t now);

/* It was put aside or taken back, by this rule or another one: the call that did it began and ended then. */
void quota_was_put_aside(struct quota *quota, uint64_t begin, uint64_t end);
void quota_was_taken_back(struct quota *quota, uint64_t end);

#endif
