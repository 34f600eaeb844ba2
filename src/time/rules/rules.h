/*
 * Whether to suspend the program, and for how long the program runs in one go: by a quota (quota.h), by programs of a
 * higher priority (priority.h), by less served programs (weight.h). Each rule may suspend the program, within one
 * bound: while work is in flight on several GPUs, the program is suspended for RULES_BOUND_NS at most in one go, and
 * runs for RULES_BACK_NS then. A suspension stops the work on all GPUs at once, and a peer on one GPU may wait for the
 * work there.
 *
 * Pure: the caller gives the time, in ns of process_clock_ns. The rules do not know the means (turns/).
 */
#pragma once

#include "priority.h"
#include "quota.h"
#include "state/revisions.h"
#include "weight.h"

#define RULES_BOUND_NS UINT64_C(100000000)
#define RULES_BACK_NS UINT64_C(10000000)

/* Between two looks while the program has work in flight or is suspended: beside rivals, and without. */
#define RULES_LOOK_NS UINT64_C(1000000)
#define RULES_ALONE_NS UINT64_C(10000000)

/* Other files only read the first part. All zero: there is no rule. */
struct rules {
	struct segment_rank rank;
	uint64_t bounded; /* suspensions that the bound ended */

	struct quota quota;
	struct priority priority;
	struct weight weight;
	bool is_bounded; /* the bound keeps the program running now */
};

/* The rules of the revision hold from now on. The quota is drawn from `budget`, and `served` counts the share of the
 * time: of the group, or of the program alone. Earlier use is kept. */
void rules_use(struct rules *rules, const struct segment_revision *revision, struct budget *budget,
               _Atomic uint64_t *served, uint64_t now);

/* Whether the program takes part in the order of programs on the GPUs. */
static inline bool rules_take_part(const struct rules *rules)
{
	return segment_rank_is_given(rules->rank);
}

struct rules_verdict rules_ask(struct rules *rules, uint64_t now, const struct rules_view *view,
                               const struct suspension *suspension, const struct rivals *rivals);
