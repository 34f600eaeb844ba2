/*
 * The rule of a weight: programs of the same priority on a GPU share the time in proportion to the weights, while
 * several have work. Pure: the caller gives the time, in ns of a clock that never goes back.
 *
 * The rule is weighted fair queueing, by presence. The GPU gives equal times to the present programs. So in each
 * moment, a program is served the time over the number of present programs, and over its weight. A program that has
 * been served more than the least served present program, by more than a lead, is suspended until the least served has
 * caught up. Members of a group add to one number, and are suspended together. A program that splits into several has
 * one share.
 *
 * Nothing is saved up: a program that comes, or comes back, has been served at least as much as the least served
 * present program. Nothing is owed for long: a program is ahead by two leads at most, and is even again after
 * WEIGHT_WAIT_NS, since only the peers themselves say how much each was served.
 *
 * While no program pauses, each gets longer slices: less time is lost by changes.
 */
#pragma once

#include "rivals.h"

#include <stdatomic.h>

/* In the program's own time on the GPU. More than five slices, since the order of slices is chance. A slice costs a
 * change where a program always has company; a program that is mostly alone has few changes. */
#define WEIGHT_LEAD_NS UINT64_C(32000000)
#define WEIGHT_SLICE_US 6000

/* Longer than a program with a hundredth of a peer's weight needs to catch up. */
#define WEIGHT_WAIT_NS UINT64_C(4000000000)

/* Members are of weight.c. */
struct weight {
	uint32_t weight;
	_Atomic uint64_t *served; /* the program's or the group's; a value of 0: no peer was met yet */
	bool was_present;    /* at the last look */
	uint64_t accounted;  /* the time of the last look */
	unsigned int others; /* peers that were present at the last look */
	bool is_ahead;       /* the program is to wait for less served peers */
	uint64_t waited_ns;  /* the time of waiting since the program was even */
};

/* Gives a program a weight, or changes the weight; `served` counts the group's share. */
void weight_use(struct weight *weight, uint32_t wanted, _Atomic uint64_t *served, uint64_t now);

/* Called each millisecond while peers are there. `is_held`: a second rule suspends the program. */
struct rules_verdict weight_ask(struct weight *weight, uint64_t now, const struct rules_view *view, bool is_held,
                                const struct suspension *suspension, const struct rivals *rivals);

/* The served time, for peers to read; 0: no peer was met yet. */
uint64_t weight_served(const struct weight *weight);
