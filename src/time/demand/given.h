/*
 * The rules of the program in time (rules/rules.h), and their accounts. A quota of the group is drawn from the group's
 * budget, a rank of the group counts into the group's share; any other quota or rank is the program's alone.
 *
 * For our thread, except given_forget.
 */
#pragma once

#include "state/board/board.h"
#include "state/segment/segment.h"
#include "time/rules/rules.h"

/* The process gets a new segment: closes the old group's account. Only while our thread does not exist. */
void given_forget(void);

/* Our thread has begun: nothing was used. */
void given_begin(void);

/* From now on, the rules of the revision of the segment hold. Earlier use is kept. */
void given_follow(const struct segment *segment, const struct segment_revision *revision, uint64_t now);

struct rules *given_rules(void);

/* The claim of this process, without the state of the moment. */
struct board_claim given_self(void);

/* Whether the program itself was given rules, and not only a neighbour (company.h): callers then warn about rules that
 * are not in force. */
bool given_is_wanted(void);
