/*
 * Launches of this process on a GPU that have not ended: wide launches, under a quota all launches, and a few launches
 * whose lengths are learnt. The sums of the lengths are exact, since the GPU itself writes the end of each launch.
 * Under the lock of the gate, but for in_flight_tell.
 *
 * A length is learnt (launch/account/lengths.h) once the end is there. A launch behind another launch of the stream
 * began at the end of the launch ahead. A launch with nothing ahead began when the GPU was told, on the processor's
 * clock: too early by the way to the GPU, and never too late.
 */
#pragma once

#include "launch/account/lengths.h"

#define IN_FLIGHT_MAX 1024

/* The GPU's clock was ahead of the processor's clock by `ahead` at least, in this period and the period before. */
struct in_flight_clock {
	int64_t ahead[2];
	uint64_t began; /* of the period; 0: nothing is known */
};

/* All zero: nothing is. */
struct in_flight {
	uint64_t added, gone;
	uint64_t sum, wide;      /* of all launches with a known length; of the wide launches */
	unsigned int unknown;    /* launches of unknown length */
	atomic_uint until_idle;  /* launches that are IN_FLIGHT_UNTIL_IDLE */
	struct in_flight_clock clock;
	struct flying {
		_Atomic uint64_t at, number; /* struct launch_end, or a number below */
		uint64_t ns;                 /* 0: not known */
		uint32_t open;               /* the claims whose TPCs the launch uses; 0: the launch is not wide */
		bool is_gone;
		struct length *length;   /* to be learnt; NULL: no length is */
		uint64_t key;            /* of the length */
		struct launch_end ahead; /* number 0: nothing was ahead */
		uint64_t launched_ns;    /* the time of the call, where nothing was ahead */
	} list[IN_FLIGHT_MAX];
};

/* In the place of the number of an end. */
#define IN_FLIGHT_CALLED UINT64_MAX           /* the call has not ended yet */
#define IN_FLIGHT_UNTIL_IDLE (UINT64_MAX - 1) /* ends once nothing of the process is in flight */
static const struct launch_end in_flight_called = {.number = IN_FLIGHT_CALLED},
                               in_flight_until_idle = {.number = IN_FLIGHT_UNTIL_IDLE};

static inline bool in_flight_has_room(const struct in_flight *in_flight)
{
	return in_flight->added - in_flight->gone < IN_FLIGHT_MAX;
}

/* A launch, wide in the TPCs of the claims `open`; 0: not wide. Returns a ticket, or 0 if there is no room. */
uint64_t in_flight_add(struct in_flight *in_flight, uint32_t open, uint64_t ns, struct launch_end end);

/* The length will be learnt, unless the ticket is 0. Before the end is told. */
void in_flight_learn(struct in_flight *in_flight, uint64_t ticket, struct length *length, struct launch_end ahead,
                     uint64_t launched_ns);

/* The end of a launch that was added as IN_FLIGHT_CALLED; a number of 0: the launch never ran. Once, on any thread. */
void in_flight_tell(struct in_flight *in_flight, uint64_t ticket, struct launch_end end);

/* Removes launches that have ended. `is_idle`: nothing of the process was in flight just now. Returns the longest
 * learnt length of a wide launch. */
uint64_t in_flight_sweep(struct in_flight *in_flight, bool is_idle);

/* The launch with this end was wide, and is not wide any more; the GPU fetched the launch neither then nor since. NULL
 * if there is no such launch. The search begins behind `ticket`, and leaves the launch's ticket there. */
const struct flying *in_flight_forget(struct in_flight *in_flight, struct launch_end end, uint64_t *ticket);

/* Wide launches were disturbed: their lengths are not learnt. */
void in_flight_disturb(struct in_flight *in_flight);
