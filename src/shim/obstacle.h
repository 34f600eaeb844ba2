/*
 * Why this program is never put aside any more: the first reason that was found stays, in this process. From any thread.
 */
#ifndef NVTASKSET_SHIM_OBSTACLE_H
#define NVTASKSET_SHIM_OBSTACLE_H

#include "state/segment.h"

#include <stdbool.h>

/* SEGMENT_TIME_NONE if it may be put aside. */
enum segment_time_state obstacle_get(void);

/* SEGMENT_TIME_NONE is none. */
void obstacle_found(enum segment_time_state why);

/* For our thread, around all of the time in which the program is aside. False if there is a reason not to begin. */
bool obstacle_begin_aside(void);
void obstacle_end_aside(void);

/* For other threads, after they found a reason: returns when the program is not aside, and will not be. At most 200 ms, if
 * our thread does not run. */
void obstacle_wait_until_back(void);

/* In the child of a fork: none yet. */
void obstacle_after_fork(void);

#endif
