/*
 * Launches of this process on a GPU that have not ended: wide launches, and under a quota all launches. The sums of the
 * lengths are exact, since the GPU itself writes the end of each launch. Under the lock of the gate, but for
 * in_flight_tell.
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
	uint64_t sums[CLAIMS_MAX]; /* of the wide launches in the TPCs of each claim */
	uint64_t sum;              /* of all launches with a known length */
	unsigned int unknown;      /* launches of unknown length */
	unsigned int stuck;        /* looks that found the oldest launch in flight */
	atomic_uint until_idle;    /* launches that are IN_FLIGHT_UNTIL_IDLE */
	struct flying {
		_Atomic uint64_t at, number; /* struct launch_end, or a number below */
		uint64_t ns;                 /* 0: not known */
		uint32_t claims;             /* a bit for each; 0: the launch is narrow */
		bool is_gone;
	} list[IN_FLIGHT_MAX];
};

/* In the place of the number of an end. */
#define IN_FLIGHT_CALLED UINT64_MAX           /* the call has not ended yet */
#define IN_FLIGHT_UNTIL_IDLE (UINT64_MAX - 1) /* ends once nothing of the process is in flight */

/* A launch. Returns a ticket, or 0 if there is no room. */
uint64_t in_flight_add(struct in_flight *in_flight, uint32_t claims, uint64_t ns, struct launch_end end);

/* The end of a launch that was added as IN_FLIGHT_CALLED; a number of 0: the launch never ran. Once, on any thread. */
void in_flight_tell(struct in_flight *in_flight, uint64_t ticket, struct launch_end end);

/* Whether a launch with this end has ended. */
bool in_flight_has_ended(struct launch_end end, bool is_idle);

/* Removes launches that have ended. `is_idle`: nothing of the process was in flight just now. */
void in_flight_sweep(struct in_flight *in_flight, bool is_idle);

/* The numbers of claims have new meanings: each wide launch counts in all claims. */
void in_flight_spread(struct in_flight *in_flight);

#endif
