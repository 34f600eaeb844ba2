/*
 * The rule of a priority: how a program gives way to programs of a higher priority on its GPUs. Pure: the caller gives
 * the time, in ns of a clock that never goes back.
 *
 * Beside a higher program, the program gets the shortest time slices. The GPU then answers the higher program
 * almost as if alone, and the program gets the rest. But each change costs both programs time (facts.md, "Time
 * slices"). So the program is suspended while the higher program works without gaps worth a change: from
 * PRIORITY_LOOKS looks at work until a pause of PRIORITY_PAUSE_NS. A gap of PRIORITY_GAP_NS is worth a change: with
 * gaps in PRIORITY_GAPS of the last 64 looks the program is not suspended. A single gap may be a delay of the host.
 *
 * Beside further programs of no higher priority, changes would take most of the shortest slices: the program gets
 * longer slices. The highest program does too: an end of the usual slice in mid-work would cost two changes for
 * nothing.
 *
 * No program waits for ever: at the begin of each PRIORITY_PERIOD_NS of the common clock, all suspended programs have
 * a common turn, with a slice for each program with work. A program that splits into several has no more of the turn.
 */
#pragma once

#include "rivals.h"

#define PRIORITY_SLICE_US 20
#define PRIORITY_SLICE_SHARED_US 1000               /* beside programs of no higher priority */
#define PRIORITY_SLICE_FIRST_US 4000                /* of the highest program */
#define PRIORITY_SHARED_NS UINT64_C(1000000000)     /* programs count for this time after work */
#define PRIORITY_LOOK_NS UINT64_C(800000)           /* closer looks are one look */
#define PRIORITY_LOOKS 5
#define PRIORITY_PAUSE_NS UINT64_C(800000)
#define PRIORITY_GAP_NS UINT64_C(150000)
#define PRIORITY_GAPS 2
#define PRIORITY_PERIOD_NS UINT64_C(500000000)
#define PRIORITY_SLICE_TURN_US 2000                 /* of a lower program in a turn: the usual slice */

/* Members are of priority.c. All zero: no higher program was seen yet. */
struct priority {
	unsigned int working;  /* looks that saw higher work since the last pause, up to PRIORITY_LOOKS */
	uint64_t gaps;         /* a bit for each of the last 64 looks that saw a gap; the last look is the lowest bit */
	uint64_t looked;       /* the last look */
	uint64_t shared_until; /* programs of no higher priority count until then */
};

/* `wants`: the program has work in flight. */
struct rules_verdict priority_ask(struct priority *priority, uint64_t now, bool wants,
                                  const struct suspension *suspension, const struct rivals *rivals);
