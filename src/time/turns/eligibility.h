/*
 * Whether this program may be suspended: the first reason against it that is found stays, in this process. From any thread.
 */
#ifndef NVTASKSET_TIME_TURNS_ELIGIBILITY_H
#define NVTASKSET_TIME_TURNS_ELIGIBILITY_H

#include "state/segment/segment.h"

#include <stdbool.h>

/* SEGMENT_TIME_NONE if it may be suspended; otherwise why not. */
enum segment_time_state eligibility_reason(void);

static inline bool eligibility_is_there(void)
{
	return eligibility_reason() == SEGMENT_TIME_NONE;
}

/* SEGMENT_TIME_NONE is no reason. */
void eligibility_lost(enum segment_time_state why);

/* For our thread, around all of the time in which the program is suspended. False if there is a reason not to begin. */
bool eligibility_begin_suspension(void);
void eligibility_end_suspension(void);

/* For other threads, after they found a reason: returns when the program is not suspended, and will not be. At most some 2 s,
 * if our thread does not run. */
void eligibility_wait_until_resumed(void);

/* In the child of a fork: there is no reason yet. */
void eligibility_after_fork(void);

#endif
