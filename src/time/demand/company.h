/*
 * Programs without a number (a priority or a weight) beside a program with a number, on the same GPU. The thread of
 * the program with a number looks for neighbours, marks their segments, and raises the revision. A neighbour's next
 * launch sees a new revision, as after an edit, and starts the neighbour's thread. The thread takes part with the
 * usual priority and weight, and ends soon after the last program with a number. Without such a neighbour, a program
 * has no thread, and its launches have no instruction for marks.
 *
 * For our thread, but for company_read.
 */
#pragma once

#include "state/segment/segment.h"
#include "work.h"

/* Whether a program has a number: the usual priority and weight are no number. */
static inline bool company_is_number(uint32_t priority, uint32_t weight)
{
	return priority != SEGMENT_PRIORITY_USUAL || weight != SEGMENT_WEIGHT_USUAL;
}

/* In a program with a number: marks some neighbours; several calls mark all. */
void company_call(uint64_t now, const struct work *work);

/* segment_read; a marked program without a rank has the usual one. */
bool company_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number);

/* In a program that may be marked. `is_there`: the last look saw a program with a number. After a while without,
 * removes the mark and returns true. */
bool company_has_left(const struct segment *segment, bool is_there, uint64_t now);

/* Our thread begins or ends, also by a fork. */
void company_forget(void);
