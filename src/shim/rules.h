/*
 * Who wants this program aside, and until when: its quota (quota.h). The program is aside while any rule wants it so; rules
 * know nothing of how that is done (aside.h). Times are in ns of process_clock_ns.
 */
#ifndef NVTASKSET_SHIM_RULES_H
#define NVTASKSET_SHIM_RULES_H

#include "state/segment.h"

#include <stdbool.h>
#include <stdint.h>

struct wish {
	bool is_aside;  /* whether the program is to be aside */
	uint64_t until; /* when to ask again at the latest */
	uint64_t soonest; /* it will not be wanted aside before */
};

/* Whether a revision has a rule that needs our thread. From any thread. */
bool rules_limit(const struct segment_revision *revision);

/* Another segment is this process's: nothing that was shared under the one before is ours. Only while there is no thread of
 * ours. */
void rules_forget(void);

/* The rest is for our thread alone. */

/* A thread has begun: nothing was used. */
void rules_reset(void);

/* From now on, the rules of this revision of the segment hold. What was used is kept. */
void rules_follow(const struct segment *segment, const struct segment_revision *revision, uint64_t now);

/* The program wants to run, or does not. */
struct wish rules_ask(uint64_t now, bool wants);

/* It was done: the call that did it began and ended then. */
void rules_put_aside(uint64_t begin, uint64_t end);
void rules_taken_back(uint64_t end);

/* Writes to the segment what was used. */
void rules_tell(const struct segment *segment);

#endif
