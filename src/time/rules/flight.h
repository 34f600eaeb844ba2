/*
 * How long all takes that a process has in flight on a GPU: the sum of the lengths of its launches. Those of one stream end in
 * their order; so a sum is kept for each part of the row of launches, and is left out once that part has ended. Where several
 * streams have something in flight, all counts until nothing is.
 *
 * Pure but for the memory, in which threads of the program write at the same time, without a lock. It may be too much, and is
 * not too little, but for one case below, because of the order of three things:
 *
 *   - A thread notes that it adds, then adds to the last part, and adds once more where another part is the last one by now.
 *   - A part is published, and only then is it seen that nobody has noted anything since the look, at which nobody was between
 *     its look and the end of its call (`entering`). So all that is in the parts before it has been launched, and is counted:
 *     when as many kernels have ended, so have these. Otherwise nothing is left out until a later look finds that.
 *   - What a look saw, it saw in the order of struct flight_seen.
 *
 * Some launches are not added: those that go like the one before (gate.h), which are few, and those outside of a call. They take
 * as long as the longest one that is left, or as the last one. The same holds for one that another thread has not yet added. Such a
 * launch may go into another stream, and end before the first one's: then a part is left out too early, and the sum is too small by
 * what is left of it. What goes like the one before while another thread launches a graph is covered by that, and not in the sum.
 */
#ifndef NVTASKSET_TIME_RULES_FLIGHT_H
#define NVTASKSET_TIME_RULES_FLIGHT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FLIGHT_PARTS 8
#define FLIGHT_NEVER UINT64_MAX /* a length that is not known */

/* All zero: nothing is in flight. */
struct flight {
	struct flight_part {
		_Atomic uint64_t from; /* so many kernels were launched when it began; FLIGHT_NEVER: not known yet */
		_Atomic uint64_t ns, longest_ns;
		_Atomic uintptr_t stream; /* into which all of it went; FLIGHT_STREAMS: there are several; 0: none yet */
	} parts[FLIGHT_PARTS];
	_Atomic uint64_t first, last; /* the parts in use, by number */
	_Atomic uint64_t notes;       /* so often has somebody added */
	_Atomic uint64_t covered;     /* so many kernels were launched with the last one, at least */
	_Atomic uint64_t last_ns;     /* its length */
	atomic_flag is_moved;         /* by one thread at a time */
};
#define FLIGHT_STREAMS UINTPTR_MAX

/* What a thread has seen, in this order: flight->notes, launches whose calls have not ended, kernels that have, and how many are in
 * flight, without those launches. */
struct flight_seen {
	uint64_t notes, entering, ended, in_flight;
};

/* Leaves out what has ended. Returns whether the longest of those that are left is shorter than the longest one before. */
bool flight_look(struct flight *flight, const struct flight_seen *seen);

/* A launch goes, by what it has seen. */
void flight_add(struct flight *flight, const struct flight_seen *seen, uint64_t ns, uintptr_t stream);

/* It was a graph: so many kernels have been launched by now. */
void flight_cover(struct flight *flight, uint64_t launched);

/* The longest launch in flight; and how long all of these take together, one after the other. FLIGHT_NEVER: not known. */
uint64_t flight_longest(const struct flight *flight);
uint64_t flight_oldest(const struct flight *flight); /* the longest of the oldest part: 0: not known */
bool flight_is_in(const struct flight *flight, uintptr_t stream); /* whether all of these went into it */
uint64_t flight_ns(const struct flight *flight, const struct flight_seen *seen);

#endif
