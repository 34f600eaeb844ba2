/*
 * What this program was given in time: its rules (rules/rules.h), and on which account they are kept. A quota and a rank that are
 * the group's are drawn from the group's budget and count into the group's share; others are the program's alone.
 *
 * For our thread, but for the first one.
 */
#ifndef NVTASKSET_TIME_DEMAND_GIVEN_H
#define NVTASKSET_TIME_DEMAND_GIVEN_H

#include "state/board/board.h"
#include "state/segment/segment.h"
#include "time/rules/rules.h"

#include <stdint.h>

/* Another segment is this process's: nothing that was shared under the one before is ours. Only while there is no thread of
 * ours. */
void given_forget(void);

/* A thread has begun: nothing was used. */
void given_begin(void);

/* From now on, the rules of this revision of the segment hold. What was used is kept. */
void given_follow(const struct segment *segment, const struct segment_revision *revision, uint64_t now);

struct rules *given_rules(void);

/* The claims of this process, without what the process does just now. */
struct board_claim given_self(void);

/* Whether the program was given rules, and warns where the rules are not in force; not for a neighbour's sake (company.h). */
bool given_is_wanted(void);

/* Writes to the segment what was used. */
void given_tell(const struct segment *segment);

#endif
