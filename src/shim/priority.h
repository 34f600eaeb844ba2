/*
 * The rules of a priority: how a program gives way to those of a higher one on its GPUs. Pure: time is what the caller says, in
 * nanoseconds of a clock that never goes back.
 *
 * While a higher one is there, the program runs for the shortest time at once that is good for both sides: the GPU then answers
 * the higher one almost as if it were alone, and whatever the higher one leaves is the program's. Each change between the two
 * costs the higher one time, though. So where it leaves next to nothing, the program is put aside until the higher one pauses.
 *
 * Where others of no higher priority want to run as well, or did a while ago, most of the shortest times would be lost by changing
 * between these and the program: it runs for longer at once, and the higher one waits for longer.
 *
 * Others are looked at only now and then: gaps between short kernels are seen by chance. So one gap is no pause; but many of them
 * are what the higher one leaves, and end the wait. A wait that was in vain, since the higher one left something or soon paused,
 * makes the next one begin later; one that was not, sooner.
 *
 * Nobody waits for ever: who is aside has a turn in each PRIORITY_PERIOD_NS. It is longer than a usual time slice of each of the
 * higher ones', which the GPU lets end first; so it has a share of about a hundredth.
 */
#ifndef NVTASKSET_SHIM_PRIORITY_H
#define NVTASKSET_SHIM_PRIORITY_H

#include "neighbours.h"

#include <stdbool.h>
#include <stdint.h>

#define PRIORITY_SLICE_US 20
#define PRIORITY_SLICE_SHARED_US 1000 /* beside others of no higher priority */
#define PRIORITY_SHARED_NS UINT64_C(1000000000) /* so long they count after they were present */
#define PRIORITY_PATIENCE_NS UINT64_C(10000000) /* at first: so long no gap of the higher one's was seen */
#define PRIORITY_PATIENCE_LEAST_NS UINT64_C(2000000)
#define PRIORITY_PATIENCE_MOST_NS UINT64_C(80000000)
#define PRIORITY_WORTH_NS UINT64_C(20000000) /* a wait that was over sooner was in vain */
#define PRIORITY_PAUSE_NS UINT64_C(1500000) /* a gap that is longer is one */
#define PRIORITY_PERIOD_NS UINT64_C(100000000)
#define PRIORITY_TURN_NS UINT64_C(3000000)
#define PRIORITY_TURN_MORE_NS UINT64_C(2100000) /* for each higher one but the first */

/* Members are priority.c's. */
struct priority {
	bool is_aside;        /* the program, whoever wanted it so */
	uint64_t changed;     /* since then */
	bool is_waiting;      /* for a higher one that leaves nothing, */
	uint64_t waits_since;
	uint64_t looked;      /* meanwhile, the last time, */
	uint64_t gap_since;   /* and it did not want to run since then; 0: it did, */
	uint64_t left_ns;     /* and the more it leaves, the more this is */
	bool has_turn;        /* meanwhile, */
	uint64_t turn_ns;     /* of this length */
	uint64_t patience_ns;
	uint64_t shared_until; /* others of no higher priority count until then */
};

void priority_begin(struct priority *priority);

struct priority_wish {
	bool is_aside;
	uint64_t slice_us; /* for how long it runs at once; 0: as by itself */
	uint64_t until;    /* when to ask again at the latest; UINT64_MAX: when something is new */
};

/* The program wants to run, or does not. */
struct priority_wish priority_step(struct priority *priority, uint64_t now, bool wants, const struct neighbours *neighbours);

/* It was put aside or taken back, by this rule or another one: the call that did it began and ended then. */
void priority_was_put_aside(struct priority *priority, uint64_t begin, uint64_t end);
void priority_was_taken_back(struct priority *priority, uint64_t end);

#endif
