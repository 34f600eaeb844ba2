/*
 * How long all takes that a process has in flight on a GPU: the sum of the lengths of its launches since nothing was, or the longest
 * of these as often as there are kernels in flight, whichever is less.
 *
 * Pure but for the memory, in which threads of the program write at the same time, without a lock. A launch is `entering` from
 * before its look until its call has ended; from then on it is counted. So the one that sees nothing in flight, and nobody
 * else enter, may begin a new row of launches. Nobody else does while it is there. One that adds meanwhile changes `state`, and so
 * keeps it from that (tests/litmus/flight.litmus). The sum may be too much.
 *
 * Some launches are not added: those that go like the one before (gate.h), which are few, and those outside of a call. They take
 * as long as the longest one of the row, or as the last one. The same holds for one that another thread has not yet added. What goes
 * like the one before while another thread launches a graph is covered by that, and not in the sum.
 */
#ifndef NVTASKSET_TIME_RULES_FLIGHT_H
#define NVTASKSET_TIME_RULES_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_NEVER UINT64_MAX /* a length that is not known */

/* All zero: nothing is in flight. */
struct flight {
	struct flight_row {
		_Atomic uint64_t ns, longest_ns;
		_Atomic uintptr_t stream; /* into which all of it went; FLIGHT_STREAMS: there are several; 0: none yet */
	} rows[2];
	_Atomic uint64_t state;   /* in bit 0 the row in use; above it, how often somebody has added */
	_Atomic uint64_t covered; /* so many kernels were launched with the last one, at least */
	_Atomic uint64_t last_ns; /* its length */
};
#define FLIGHT_STREAMS UINTPTR_MAX

/* What a thread has seen, in this order: flight->state, launches whose calls have not ended, kernels that have, and how many are in
 * flight, without those launches. */
struct flight_seen {
	uint64_t state, entering, ended, in_flight;
};

/* Where nothing is in flight, nothing counts any more. Returns whether the longest is shorter now than before. */
bool flight_look(struct flight *flight, const struct flight_seen *seen);

/* A launch goes, by what it has seen. Returns the same. */
bool flight_add(struct flight *flight, const struct flight_seen *seen, uint64_t ns, uintptr_t stream);

/* It was a graph: so many kernels have been launched by now. */
void flight_cover(struct flight *flight, uint64_t launched);

/* The longest launch of the row; and how long all of these take together, one after the other. FLIGHT_NEVER: not known. */
uint64_t flight_longest(const struct flight *flight);
uint64_t flight_ns(const struct flight *flight, const struct flight_seen *seen);
bool flight_is_in(const struct flight *flight, uintptr_t stream); /* whether all of these went into it */

#endif
