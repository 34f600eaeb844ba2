/*
 * Whether this program is to be suspended, and for how long it runs at once: its quota (quota.h), programs of a higher priority
 * (priority.h), those that have been served less (weight.h). It is suspended while any rule says so, but for one bound: while it
 * has work in flight on another GPU as well, it is suspended for RULES_BOUND_NS at most in one go, and runs for RULES_BACK_NS then,
 * since it is suspended on all of its GPUs at once, and others may wait on one of them for its work there.
 *
 * Pure: time is what the caller says, in ns of process_clock_ns. The rules do not know how that is done (turns/).
 */
#ifndef NVTASKSET_TIME_RULES_RULES_H
#define NVTASKSET_TIME_RULES_RULES_H

#include "priority.h"
#include "quota.h"
#include "rivals.h"
#include "state/revisions.h"
#include "suspension.h"
#include "weight.h"

#include <stdbool.h>
#include <stdint.h>

#define RULES_BOUND_NS UINT64_C(100000000)
#define RULES_BACK_NS UINT64_C(10000000)

/* How often the others are looked at while the program has work in flight or is suspended; and how often it is looked whether
 * there are others. */
#define RULES_LOOK_NS UINT64_C(1000000)
#define RULES_ALONE_NS UINT64_C(10000000)

/* Members of the first part are for others to read. All zero: there is no rule. */
struct rules {
	struct segment_rank rank;
	uint64_t bounded; /* so often the bound ended a suspension */

	struct quota quota;
	struct priority priority;
	struct weight weight;
	bool is_bounded; /* it is not suspended now, by the bound */
};

struct rules_verdict {
	bool suspends;
	uint64_t slice_us; /* for how long the program is to run at once, while others have work; 0: as by itself */
	uint64_t until;    /* when to ask again at the latest */
	uint64_t soonest;  /* it will not be suspended before */
};

/* From now on this revision's rules hold. Its quota is drawn from `budget`, its share of the time is counted in `served`: both are
 * its group's, or its own. What was used is kept. */
void rules_use(struct rules *rules, const struct segment_revision *revision, struct budget *budget, _Atomic uint64_t *served,
               uint64_t now);

/* Whether the program takes part in the order of programs on its GPUs. */
bool rules_take_part(const struct rules *rules);

struct rules_verdict rules_ask(struct rules *rules, uint64_t now, const struct rules_view *view,
                               const struct suspension *suspension, const struct rivals *rivals);

#endif
