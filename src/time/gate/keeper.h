/*
 * What our thread does for the gate (gate.h): it says on the board what the process claims, lends and borrows, sees who else
 * is there, counts what was used of the quota, and ends all waiting where MPS has gone. For our thread alone.
 */
#ifndef NVTASKSET_TIME_GATE_KEEPER_H
#define NVTASKSET_TIME_GATE_KEEPER_H

#include "state/segment/segment.h"

/* From here on this revision's rules hold, where there may have been others; or none: nothing waits. */
void keeper_follow(const struct segment *segment, const struct segment_revision *revision);
void keeper_end(void);

/* Looks at all, and writes to the segment what it saw. Returns when to look again at the latest; `is_idle`: nothing changes
 * before the next launch. What came of it: SEGMENT_TIME_HELD, or what of it does not hold. */
uint64_t keeper_look(uint64_t now, bool *is_idle);
enum segment_time_state keeper_state(void);

/* In the child of a fork. */
void keeper_after_fork(void);

#endif
