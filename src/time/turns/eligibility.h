/*
 * Whether this program may be suspended. The first reason against suspension stays, in this process. From any thread.
 */
#pragma once

#include "state/segment/segment.h"

/* SEGMENT_TIME_NONE if the program may be suspended; otherwise the reason. */
enum segment_time_state eligibility_reason(void);

static inline bool eligibility_is_there(void)
{
	return eligibility_reason() == SEGMENT_TIME_NONE;
}

/* SEGMENT_TIME_NONE is no reason. */
void eligibility_lost(enum segment_time_state why);

/* For our thread, around each suspension of the program. False: a reason forbids to begin. */
bool eligibility_begin_suspension(void);
void eligibility_end_suspension(void);

/* For a thread that has found a reason: returns when the program is not suspended, and will not be. Waits some 2 s at
 * most, if our thread does not run. */
void eligibility_wait_until_resumed(void);

/* In the child of a fork: there is no reason yet. */
void eligibility_after_fork(void);
