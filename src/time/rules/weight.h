/*
 * The rule of a weight: programs of the same priority on a GPU share it in this proportion, where several of them have work.
 * Pure: time is what the caller says, in nanoseconds of a clock that never goes back.
 *
 * This is weighted fair queueing, by presence. The GPU gives those present equal times. So of each moment, a program has been
 * served the time over the number of those present, and this counts the less the greater its weight is. A program that has been
 * served more than the least served one that is present, and by more than a lead, is suspended until that one has caught up.
 * Members of a group are served together: they add to one number, and are suspended together. So a program that splits into
 * several has one share.
 *
 * Nothing is saved up: a program that comes, or comes back, has been served at least as much as the least served one that is
 * there. Nothing is owed for long: a program is ahead by two leads at most, and is even with the others after WEIGHT_WAIT_NS, since
 * what they have been served is only what they say.
 *
 * Where none of them pauses, they run for longer at once, so that less time is lost by changes.
 */
#ifndef NVTASKSET_TIME_RULES_WEIGHT_H
#define NVTASKSET_TIME_RULES_WEIGHT_H

#include "rivals.h"
#include "suspension.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of the program's own time on the GPU: more than five of these slices, since their order is chance, and each costs a program that
 * always has company a change, of which one that is mostly alone has few. */
#define WEIGHT_LEAD_NS UINT64_C(32000000)
#define WEIGHT_SLICE_US 6000

/* Longer than it takes one of a hundredth of the other's weight. */
#define WEIGHT_WAIT_NS UINT64_C(4000000000)

/* Members are weight.c's. */
struct weight {
	uint32_t weight;
	_Atomic uint64_t *served; /* its own, or its group's; 0: it has not met others yet */
	bool was_present;    /* at the last look, */
	uint64_t accounted;  /* which was then; */
	unsigned int others; /* so many others were present */
	bool is_ahead;       /* and it is to wait for them, */
	uint64_t waited_ns;  /* and has done so, since it was even with them */
};

struct weight_verdict {
	bool suspends;
	uint64_t slice_us; /* 0: as by itself */
};

/* A weight for a program that had none, or another one; and the number in which its group's share is counted. */
void weight_use(struct weight *weight, uint32_t wanted, _Atomic uint64_t *served, uint64_t now);

/* To be asked again and again while others are there: each millisecond. `is_held`: another rule suspends it. */
struct weight_verdict weight_ask(struct weight *weight, uint64_t now, const struct rules_view *view, bool is_held,
                                 const struct suspension *suspension, const struct rivals *rivals);

/* What it has been served, for others to read; 0: it has not met others yet. */
uint64_t weight_served(const struct weight *weight);

#endif
