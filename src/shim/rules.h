/*
 * Who wants this program aside, and until when: its quota (quota.h), those of a higher priority (priority.h), those that have been
 * served less (weight.h). The program is aside while any rule wants it so, but for one bound that holds for all (bound.h). And
 * for how long it runs at once. Rules know nothing of how that is done (aside.h, slices.h). Times are in ns of process_clock_ns.
 */
#ifndef NVTASKSET_SHIM_RULES_H
#define NVTASKSET_SHIM_RULES_H

#include "neighbours.h"
#include "sight.h"
#include "state/segment.h"

#include <stdbool.h>
#include <stdint.h>

struct wish {
	bool is_aside;     /* whether the program is to be aside */
	uint64_t slice_us; /* for how long it is to run at once, while others want to; 0: as by itself */
	uint64_t until;    /* when to ask again at the latest */
	uint64_t soonest;  /* it will not be wanted aside before */
};

/* Another segment is this process's: nothing that was shared under the one before is ours. Only while there is no thread of
 * ours. */
void rules_forget(void);

/* The rest is for our thread alone. */

/* A thread has begun: nothing was used. */
void rules_reset(void);

/* From now on, the rules of this revision of the segment hold. What was used is kept. */
void rules_follow(const struct segment *segment, const struct segment_revision *revision, uint64_t now);

/* Whether it takes part in who goes first, and as what; what it does just now is not the rules'. */
bool rules_take_part(void);
struct neighbours_self rules_self(void);

/* The group's budget, if its quota is the group's; or NULL. Until rules_follow. */
struct budget *rules_budget(void);

/* What the program does, and the others; without any, nobody takes part. */
struct wish rules_ask(uint64_t now, const struct sight *sight, const struct neighbours *neighbours);

/* It was done: the call that did it began and ended then. */
void rules_put_aside(uint64_t begin, uint64_t end);
void rules_taken_back(uint64_t end);

/* Writes to the segment what was used. */
void rules_tell(const struct segment *segment);

#endif
