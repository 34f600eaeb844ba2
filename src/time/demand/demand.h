/*
 * Demand: whether a process has work in flight on a GPU. It is exact: what it has launched minus what the GPU says has ended
 * (state/kernels/counts.h). A process whose numbers are not complete is taken to have work while they move, and for
 * DEMAND_UNKNOWN_NS after, too. Pure: time is what the caller says, in nanoseconds of a clock that never goes back.
 *
 * Somebody reads the numbers again and again. Where they are the same twice and nothing is in flight, nothing was launched
 * between: so the process has been idle since the first of these looks, at least.
 */
#ifndef NVTASKSET_TIME_DEMAND_DEMAND_H
#define NVTASKSET_TIME_DEMAND_DEMAND_H

#include "state/kernels/counts_read.h"

#include <stdbool.h>
#include <stdint.h>

#define DEMAND_UNKNOWN_NS UINT64_C(100000000)

/* Looks that are closer to each other are one in the history. */
#define DEMAND_LOOK_NS UINT64_C(800000)

/* A gap of 50 us in each 4 ms is seen by one of some 80 looks: so a process without gaps is one in which none of this time's was. */
#define DEMAND_GAPS_NS UINT64_C(500000000)

/* All zero: nothing was read yet. */
struct demand {
	bool is_known;       /* when its kernels end is known exactly */
	bool wants;          /* it has work in flight */
	uint64_t launched, ended;
	uint64_t moved;      /* these numbers have changed then, or later than at the look before */
	uint64_t idle_since; /* it is idle, and has been since then at least */
	uint64_t looked;
	uint64_t paused;     /* the last look that saw no work, or the first one */
	uint64_t recorded;   /* the last look of the history */
	uint8_t history;     /* a bit for each of the last 8 looks: it wanted; the last one is the lowest */
};

void demand_note(struct demand *demand, uint64_t now, const struct counts_of_gpu *counts);

/* For how long it has been idle, at least; 0 while it wants. */
uint64_t demand_idle_ns(const struct demand *demand);

/* Whether it pauses now and then: a look within DEMAND_GAPS_NS saw no work. */
bool demand_pauses(const struct demand *demand);

/* Whether it wants, or pauses for a moment only: its last work was seen at most two looks ago, and most looks see some. */
bool demand_is_present(const struct demand *demand);

#endif
