/*
 * The rule of a priority: how a program gives way to those of a higher one on its GPUs. Pure: time is what the caller says, in
 * nanoseconds of a clock that never goes back.
 *
 * While a higher one is there, the program runs for the shortest time at once. The GPU then answers the higher one almost as if
 * it were alone, and what the higher one leaves is the program's. But each change between the two costs both of them time
 * (facts.md, "Time slices"). So the program is suspended while the higher one works without gaps that are worth a change:
 * from PRIORITY_LOOKS looks that saw it work, until it pauses for PRIORITY_PAUSE_NS. A gap of PRIORITY_GAP_NS is worth a change: the
 * program is not suspended where PRIORITY_GAPS of the last 64 looks saw one. A single one may be a moment of the higher one's host.
 *
 * Where others of no higher priority have work as well, most of the shortest times would be lost by changes between these and the
 * program. So it runs for longer at once. And so does the highest one while others are below it: the end of its usual time slice in the
 * middle of its work would cost it two changes for nothing.
 *
 * No program waits for ever: all that are suspended have a turn at the same time, at the begin of each PRIORITY_PERIOD_NS of the
 * common clock, in which each of those with work may have a time slice. So a program that splits into several has no more of it.
 */
#ifndef NVTASKSET_TIME_RULES_PRIORITY_H
#define NVTASKSET_TIME_RULES_PRIORITY_H

#include "rivals.h"
#include "suspension.h"

#include <stdbool.h>
#include <stdint.h>

#define PRIORITY_SLICE_US 20
#define PRIORITY_SLICE_SHARED_US 1000               /* beside others of no higher priority */
#define PRIORITY_SLICE_FIRST_US 4000                /* of the highest one */
#define PRIORITY_SHARED_NS UINT64_C(1000000000)     /* so long they count after they had work */
#define PRIORITY_LOOK_NS UINT64_C(800000)           /* looks that are closer to each other are one */
#define PRIORITY_LOOKS 5
#define PRIORITY_PAUSE_NS UINT64_C(800000)
#define PRIORITY_GAP_NS UINT64_C(150000)
#define PRIORITY_GAPS 2
#define PRIORITY_PERIOD_NS UINT64_C(500000000)
#define PRIORITY_SLICE_TURN_US 2000                 /* of a lower one in its turn: the usual one */

/* Members are priority.c's. All zero: no higher one was seen yet. */
struct priority {
	unsigned int working;  /* so many looks saw the higher one work since its last pause, up to PRIORITY_LOOKS */
	uint64_t gaps;         /* a bit for each of the last 64 looks: it saw a gap of the higher one; the last one is the lowest */
	uint64_t looked;       /* the last of these looks */
	uint64_t shared_until; /* others of no higher priority count until then */
};

struct priority_verdict {
	bool suspends;
	uint64_t slice_us; /* for how long the program runs at once; 0: as by itself */
	uint64_t until;    /* when to ask again at the latest; UINT64_MAX: when something is new */
};

/* `wants`: the program has work in flight. */
struct priority_verdict priority_ask(struct priority *priority, uint64_t now, bool wants, const struct suspension *suspension,
                                     const struct rivals *rivals);

#endif
