/*
 * Who wants to run in most looks wants to run, though this look sees no work: its host may only need a moment until there is
 * more. Who pauses often, or for long, does not. Pure: time is what the caller says, in nanoseconds of a clock that never
 * goes back.
 */
#ifndef NVTASKSET_SHIM_HABIT_H
#define NVTASKSET_SHIM_HABIT_H

#include <stdbool.h>
#include <stdint.h>

/* So long, nothing was seen of who may still want to run: one look or two. */
#define HABIT_PAUSE_NS UINT64_C(2000000)

/* Members are habit.c's. All zero: nothing was seen yet. */
struct habit {
	uint32_t seen_ppm; /* of the last looks, in so many it wanted to run; later ones count for more */
	uint64_t seen;     /* for the last time at this moment */
};

/* At each look, each millisecond or so: whether it is seen to want to run. Returns whether it does. */
bool habit_look(struct habit *habit, uint64_t now, bool is_seen);

#endif
