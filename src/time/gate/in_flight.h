/*
 * The launches of this process on one GPU that have gone through the turnstile (turnstile.h) and have not ended; a graph's is
 * one. A kernel's end is seen by its stamp (state/kernels/stamps.h), a graph's by the counts (state/kernels/counts.h):
 * the counts of graphs that were launched before it in other streams, too, so it may be seen late. Nobody waits for a
 * launch whose end cannot be seen. No system call.
 *
 * The caller sees to it that only one thread at a time is here.
 */
#ifndef NVTASKSET_TIME_GATE_IN_FLIGHT_H
#define NVTASKSET_TIME_GATE_IN_FLIGHT_H

#include "reserve.h"
#include "state/kernels/counts.h"
#include "state/kernels/stamps.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define IN_FLIGHT_MAX 512

/* The first part is for the caller to set and read; the rest is in_flight.c's. */
struct in_flight_launch {
	struct reserve_launch reserved;
	uint64_t came;               /* when it went */
	const struct stamps *stamps; /* where its record is; NULL: there is none */
	uint64_t record;
	bool is_graph;
	uint64_t unseen; /* it was looked at then, and had not ended; 0: never */
	uint64_t seen;   /* it had ended by then */

	atomic_bool is_called; /* its call has ended, and what its end is seen by is written: its thread may not have the lock then */
	uint64_t number; /* rising in the order in which they came */
	const struct counts_place *place; /* of a graph: where its kernels count, */
	uint64_t nodes_to_end;            /* and to what it has come when they have ended */
};

/* All zero has none. Each launch is free, in flight, or seen to have ended and not taken yet; or taken. */
struct in_flight {
	struct in_flight_launch launches[IN_FLIGHT_MAX];
	struct in_flight_launch *free[IN_FLIGHT_MAX], *running[IN_FLIGHT_MAX], *ended[IN_FLIGHT_MAX];
	unsigned int free_count, running_count, ended_count;
	unsigned int used; /* the first so many were used once */
	uint64_t numbers;  /* the last one that was given */
};

/* One more, which is in flight until its call has ended at least. NULL if there are too many. */
struct in_flight_launch *in_flight_add(struct in_flight *all);

/* Its call has ended: by what its end will be seen. A graph's record may be missing. Or nobody can see it, or it was not
 * launched after all: then it has ended. */
void in_flight_is_kernel(struct in_flight_launch *launch, const struct stamps *stamps, uint64_t record);
void in_flight_is_graph(struct in_flight_launch *launch, const struct counts_place *place, const struct stamps *stamps,
                        uint64_t record);
void in_flight_is_nothing(struct in_flight_launch *launch);

/* Looks which have ended, and says how many have not. */
unsigned int in_flight_look(struct in_flight *all, uint64_t now);

/* How many had not ended at the last look. */
unsigned int in_flight_count(const struct in_flight *all);

/* Takes those that were seen to have ended, at most `room`, in the order in which they came: they are the caller's until it
 * frees them. */
unsigned int in_flight_take(struct in_flight *all, struct in_flight_launch *taken[], unsigned int room);
void in_flight_free(struct in_flight *all, struct in_flight_launch *launch);

/* Their ends will not come: all whose call has ended have ended now. */
void in_flight_give_up(struct in_flight *all, uint64_t now);

#endif
