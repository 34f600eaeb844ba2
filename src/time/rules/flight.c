#include "flight.h"

#include "base/extremes.h"

#define ADDED 2 /* to the state */

/* A length that is not known makes the sum unknown. */
static uint64_t add(uint64_t a, uint64_t b)
{
	return a > FLIGHT_NEVER - b ? FLIGHT_NEVER : a + b;
}

static uint64_t times(uint64_t count, uint64_t ns)
{
	return ns != 0 && count > FLIGHT_NEVER / ns ? FLIGHT_NEVER : count * ns;
}

static const struct flight_row *row_of(const struct flight *flight)
{
	return &flight->rows[atomic_load(&flight->state) & 1];
}

/* So many of those launched by now has nobody added. */
static uint64_t missed_of(const struct flight *flight, uint64_t launched)
{
	return launched - min_u64(launched, atomic_load(&flight->covered));
}

/* --- looking ---------------------------------------------------------------------------------------------------------- */

/* The row is empty before it can be found. */
bool flight_look(struct flight *flight, const struct flight_seen *seen)
{
	struct flight_row *next = &flight->rows[~seen->state & 1];
	uint64_t state = seen->state, before = flight_longest(flight);

	if (seen->entering != 0 || seen->in_flight != 0)
		return false;
	atomic_store(&next->ns, 0);
	atomic_store(&next->longest_ns, 0);
	atomic_store(&next->stream, 0);
	if (atomic_compare_exchange_strong(&flight->state, &state, (state + ADDED) ^ 1))
		atomic_store(&flight->covered, seen->ended); /* also what was refused, or captured */
	return flight_longest(flight) < before;
}

/* --- adding ----------------------------------------------------------------------------------------------------------- */

static void raise(_Atomic uint64_t *least, uint64_t to)
{
	uint64_t before = atomic_load(least);

	while (before < to && !atomic_compare_exchange_weak(least, &before, to))
		continue;
}

static void note_stream(struct flight_row *row, uintptr_t stream)
{
	uintptr_t others = 0;

	if (!atomic_compare_exchange_strong(&row->stream, &others, stream) && others != stream)
		atomic_store(&row->stream, FLIGHT_STREAMS);
}

/* With those that nobody has added since the last one. The first one of a row may be shorter than the last one before. */
bool flight_add(struct flight *flight, const struct flight_seen *seen, uint64_t ns, uintptr_t stream)
{
	struct flight_row *row = &flight->rows[atomic_fetch_add(&flight->state, ADDED) & 1];
	uint64_t launched = seen->ended + seen->in_flight, missed = missed_of(flight, launched), before = atomic_load(&row->ns);
	uint64_t longest = flight_longest(flight), theirs = missed > 0 ? longest : 0, all = add(ns, times(missed, theirs));

	note_stream(row, stream);
	while (!atomic_compare_exchange_weak(&row->ns, &before, add(before, all)))
		continue;
	raise(&row->longest_ns, max_u64(ns, theirs));
	atomic_store(&flight->last_ns, ns);
	raise(&flight->covered, launched + 1);
	return flight_longest(flight) < longest;
}

void flight_cover(struct flight *flight, uint64_t launched)
{
	raise(&flight->covered, launched);
}

/* --- asking ----------------------------------------------------------------------------------------------------------- */

bool flight_is_in(const struct flight *flight, uintptr_t stream)
{
	uintptr_t theirs = atomic_load(&row_of(flight)->stream);

	return theirs == 0 || theirs == stream;
}

uint64_t flight_longest(const struct flight *flight)
{
	uint64_t longest = atomic_load(&row_of(flight)->longest_ns);

	return longest != 0 ? longest : atomic_load(&flight->last_ns);
}

uint64_t flight_ns(const struct flight *flight, const struct flight_seen *seen)
{
	uint64_t in_flight = seen->in_flight + seen->entering, longest = flight_longest(flight);
	uint64_t all = add(atomic_load(&row_of(flight)->ns), times(missed_of(flight, seen->ended + in_flight), longest));

	return min_u64(all, times(in_flight, longest));
}
