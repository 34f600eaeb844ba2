/*
 * How long all takes that a process has in flight on a GPU: at most as long as its launches together since nothing was, and at most as
 * long as the longest of them as often as there are kernels in flight.
 *
 * Pure but for the memory, in which threads of the program write at the same time, without a lock. A launch is `entering` from
 * before its look until its call has ended; from then on it is counted. What another thread adds after a look keeps this one from
 * beginning anew (tests/litmus/flight.litmus). Launches that go like the one before (gate.h) add as much as that; and those outside
 * of a call, whose length nobody knows, as much as the longest. One that another thread has not added yet counts as the longest.
 */
#ifndef NVTASKSET_TIME_RULES_FLIGHT_H
#define NVTASKSET_TIME_RULES_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_NEVER UINT64_MAX /* a length that is not known */

/* All zero: nothing is in flight. */
struct flight {
	_Atomic uint64_t word;    /* from above: a number that changes with each write, the sum, and the longest */
	_Atomic uintptr_t stream; /* the last launch went into it, */
	_Atomic uint64_t since;   /* as did all that came when so many had been launched */
};

/* What a thread has seen, in this order: flight->word, launches whose calls have not ended, how many kernels are in flight without
 * those, and how many have ended. */
struct flight_seen {
	uint64_t word, entering, in_flight, ended;
};

/* How long all of it takes, one after the other. FLIGHT_NEVER: not known. */
uint64_t flight_look(const struct flight_seen *seen);

/* A launch goes, by what was seen. Returns whether the longest is shorter now than before. */
bool flight_add(struct flight *flight, const struct flight_seen *seen, uint64_t ns, uintptr_t stream);

/* Another one of this length goes, by the number for it, 0 for none; or one outside of a call. */
uint64_t flight_more(uint64_t ns);
static inline void flight_add_more(struct flight *flight, uint64_t more)
{
	atomic_fetch_add_explicit(&flight->word, more, memory_order_relaxed);
}
void flight_add_unseen(struct flight *flight);

uint64_t flight_longest(const struct flight *flight);
bool flight_is_in(const struct flight *flight, const struct flight_seen *seen, uintptr_t stream); /* whether all of it went there */

#endif
