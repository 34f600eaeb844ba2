/*
 * Launches of this process on a GPU that have not ended: the wide ones, and all while there is a quota. The sums of their lengths are
 * exact, since the GPU says itself when a launch has ended. Under the lock of the gate, but for in_flight_tell.
 */
#ifndef NVTASKSET_TIME_GATE_IN_FLIGHT_H
#define NVTASKSET_TIME_GATE_IN_FLIGHT_H

#include "claims.h"
#include "driver/calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define IN_FLIGHT_MAX 1024

/* All zero: nothing is. */
struct in_flight {
	uint64_t added, gone;
	uint64_t sums[CLAIMS_MAX]; /* of those that are wide, in the TPCs of each claim */
	uint64_t sum;              /* of all; */
	unsigned int unknown;      /* but for so many, whose lengths nobody knows */
	unsigned int stuck;        /* so many looks found the oldest one there */
	atomic_uint until_idle;    /* so many were told to be IN_FLIGHT_UNTIL_IDLE */
	struct flying {
		_Atomic uint64_t at, number; /* struct launch_end; or one of those below */
		uint64_t ns;                 /* 0: not known */
		uint32_t claims;             /* a bit for each; 0: it is not wide */
		bool is_gone;
	} list[IN_FLIGHT_MAX];
};

/* Other ends of a launch, in the place of its number. */
#define IN_FLIGHT_CALLED UINT64_MAX           /* its call has not ended yet */
#define IN_FLIGHT_UNTIL_IDLE (UINT64_MAX - 1) /* once nothing of the process is in flight */

/* A launch. Returns a ticket, or 0 if there is no room. */
uint64_t in_flight_add(struct in_flight *in_flight, uint32_t claims, uint64_t ns, struct launch_end end);

/* From then on, this is its end; a number of 0: it has none. For one that was added as IN_FLIGHT_CALLED, once, on any thread. */
void in_flight_tell(struct in_flight *in_flight, uint64_t ticket, struct launch_end end);

/* Those that have ended are no more. `is_idle`: nothing of the process was in flight just now. */
void in_flight_sweep(struct in_flight *in_flight, bool is_idle);

/* The claims are others: each wide launch counts in all of them. */
void in_flight_spread(struct in_flight *in_flight);

#endif
