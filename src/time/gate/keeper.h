/*
 * The work of our thread for the gate (gate.h): tells the board what the process claims, lends and borrows; sees other
 * programs; counts the used quota; and ends all waits once MPS has gone. For our thread alone.
 */
#pragma once

#include "state/segment/segment.h"

/* From here on the rules of this revision hold. Or no rules: no launch waits. */
void keeper_follow(const struct segment *segment, const struct segment_revision *revision);
void keeper_end(void);

/* Looks at all, and writes the result to the segment. Returns when to look again at the latest; `is_idle`: nothing
 * changes before the next launch. The state: SEGMENT_TIME_HELD, or the rule that does not hold. */
uint64_t keeper_look(uint64_t now, bool *is_idle);
enum segment_time_state keeper_state(void);

void keeper_after_fork(void);
