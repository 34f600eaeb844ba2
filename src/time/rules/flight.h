/*
 * How long all takes that a process has in flight on a GPU: the sum of the lengths of its launches, never less than it is. Launches
 * of one stream end in their order; so a sum is kept for each part of the row of launches, and is left out once that part has ended.
 * Where several streams have something in flight, all counts until nothing is. Pure but for the memory, in which threads of the
 * program write at the same time, without a lock.
 *
 * A launch's number is how many kernels have been launched with it, at least. Kernels that nobody has added, since they were
 * launched like the one before or outside of a call, take as long as the longest one, or as the last one where nothing else is left.
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
		_Atomic uint64_t from, ns, longest_ns; /* launches with numbers from there on to the next part */
	} parts[FLIGHT_PARTS];
	_Atomic uint64_t first, last; /* the parts in use, by number */
	_Atomic uint64_t number;      /* of the last launch, */
	_Atomic uint64_t last_ns;     /* and its length */
	_Atomic uintptr_t stream;     /* into which all went; FLIGHT_STREAMS: there are several */
	atomic_flag is_moved;         /* by one thread at a time */
};
#define FLIGHT_STREAMS UINTPTR_MAX

/* So many kernels have ended, and so many are in flight; 0: nothing is left of what was before. Returns whether the longest of those
 * that are left is shorter than the longest one before. */
bool flight_look(struct flight *flight, uint64_t ended, uint64_t in_flight);

/* A launch goes. */
void flight_add(struct flight *flight, uint64_t number, uint64_t ns, uintptr_t stream);

/* It was a graph, whose kernels have been launched by now. */
void flight_number(struct flight *flight, uint64_t number);

/* The longest launch in flight; and how long all of these take together, one after the other. FLIGHT_NEVER: not known. */
uint64_t flight_longest(const struct flight *flight);
uint64_t flight_ns(const struct flight *flight, uint64_t ended, uint64_t in_flight);

#endif
