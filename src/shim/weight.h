/*
 * The rules of a weight: those of the same priority on a GPU share it in this proportion, where several of them want it. Pure:
 * time is what the caller says, in nanoseconds of a clock that never goes back.
 *
 * This is weighted fair queueing, by presence. The GPU gives those that are present equal times. So of each moment, a program
 * has been served the time over the number of those present, and this counts the less the greater its weight is. Who has been
 * served more than the least served one that is present, and by more than a lead, is put aside until that one has caught up. Only
 * those present count: if the least served one cannot run either, nobody waits for it.
 *
 * Looks see programs now and then without work that only wait for their host for a moment. Who wants to run in most looks is
 * present meanwhile (habit.h): the GPU gives the others what is theirs, and this one its turn afterwards. So of each pause,
 * up to HABIT_PAUSE_NS are nobody's where all others are aside.
 *
 * Nobody saves up anything: a program that does not want to run, or is aside for another reason, keeps its distance to the
 * others. Nobody is so far ahead of them that it would wait for longer than two leads of its own need.
 *
 * What the others have been served is only what they say. Whoever has waited for WEIGHT_WAIT_NS without catching up is even with
 * them: so nobody waits for ever, and even the smallest weight has almost a hundredth of the time.
 */
#ifndef NVTASKSET_SHIM_WEIGHT_H
#define NVTASKSET_SHIM_WEIGHT_H

#include "habit.h"
#include "neighbours.h"

#include <stdbool.h>
#include <stdint.h>

/* Of the program's own time on the GPU: more than some time slices, whose order is chance. */
#define WEIGHT_LEAD_NS UINT64_C(8000000)

/* Longer than it takes one of a hundredth of the other's weight. */
#define WEIGHT_WAIT_NS UINT64_C(1000000000)

/* Of the time in company, so much is lost to all, since the GPU changes between them. It depends on their kernels: this is the
 * half of the most that was seen (docs/hardware.md, "Time slices"). */
#define WEIGHT_LOSS_PPM 45000

/* Members are weight.c's; only those of the first part are for others to read. */
struct weight {
	uint64_t served_ns; /* UINT64_MAX: it has not seen the others yet */

	uint32_t weight;
	bool is_aside;       /* the program, whoever wanted it so */
	bool is_ahead;       /* and is to wait for the others, */
	uint64_t waited_ns;  /* and has done so, since it was even with them */
	uint64_t accounted;  /* up to this moment; */
	uint32_t own_ppm;    /* at that moment, so much of the time was its own, if it was not aside */
	struct habit habit;  /* of wanting to run */
	struct habit habit_of_others; /* … all of those that there were */
	unsigned int others; /* so many */
	uint64_t least_ns;   /* and the least served one of those present had been served this; UINT64_MAX: there was none */
};

/* A program that is new here; another weight for one that is not, which keeps what it has been served. */
void weight_begin(struct weight *weight, uint32_t wanted, uint64_t now);
void weight_change(struct weight *weight, uint32_t wanted);

/* The program wants to run, or does not; `is_held`: another rule wants it aside. Returns whether it is to be aside. To be asked
 * again and again while others are there: each millisecond. */
bool weight_step(struct weight *weight, uint64_t now, bool wants, bool is_held, const struct neighbours *neighbours);

/* It was put aside or taken back, by this rule or another one: the call that did it began and ended then. */
void weight_was_put_aside(struct weight *weight, uint64_t begin, uint64_t end);
void weight_was_taken_back(struct weight *weight, uint64_t end);

#endif
