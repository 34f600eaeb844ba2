#include "flight.h"

#include "base/extremes.h"

/* A length that is not known makes the sum unknown. */
static uint64_t add(uint64_t a, uint64_t b)
{
	return a > FLIGHT_NEVER - b ? FLIGHT_NEVER : a + b;
}

static uint64_t times(uint64_t count, uint64_t ns)
{
	return ns != 0 && count > FLIGHT_NEVER / ns ? FLIGHT_NEVER : count * ns;
}

static struct flight_part *part_at(const struct flight *flight, uint64_t number)
{
	return (struct flight_part *)&flight->parts[number % FLIGHT_PARTS];
}

/* So many of those launched by now has nobody added. */
static uint64_t missed_of(const struct flight *flight, uint64_t launched)
{
	return launched - min_u64(launched, atomic_load(&flight->covered));
}

/* --- parts ------------------------------------------------------------------------------------------------------------ */

static void begin_part(struct flight *flight, uint64_t last)
{
	struct flight_part *part = part_at(flight, last);

	atomic_store(&part->from, FLIGHT_NEVER);
	atomic_store(&part->ns, 0);
	atomic_store(&part->longest_ns, 0);
	atomic_store(&part->stream, 0);
	atomic_store(&flight->last, last);
}

/* All of these went into it; FLIGHT_STREAMS: into several. */
static uintptr_t one_stream(const struct flight *flight, uintptr_t one)
{
	for (uint64_t i = atomic_load(&flight->first); i <= atomic_load(&flight->last) && one != FLIGHT_STREAMS; i++) {
		uintptr_t stream = atomic_load(&part_at(flight, i)->stream);

		one = one == 0 || stream == 0 || stream == one ? one | stream : FLIGHT_STREAMS;
	}
	return one;
}

static void leave_out(struct flight *flight, const struct flight_seen *seen)
{
	uint64_t first = atomic_load(&flight->first), last = atomic_load(&flight->last);
	_Atomic uint64_t *from = &part_at(flight, last)->from;

	if (atomic_load(from) == FLIGHT_NEVER)
		atomic_store(from, seen->ended + seen->in_flight);
	while (first < last && seen->ended >= atomic_load(&part_at(flight, first + 1)->from))
		first++;
	atomic_store(&flight->first, first);
	if (seen->in_flight == 0)
		atomic_store(&flight->covered, seen->ended); /* also what was refused, or captured */
}

/* What comes next gets a new part where there is room. */
static void move(struct flight *flight, const struct flight_seen *seen)
{
	uint64_t last = atomic_load(&flight->last);
	const struct flight_part *part = part_at(flight, last);
	bool has_room = last - atomic_load(&flight->first) + 1 < FLIGHT_PARTS;

	if (has_room && atomic_load(&part->ns) > 0 && atomic_load(&part->from) != FLIGHT_NEVER)
		begin_part(flight, last + 1);
	bool is_in_order = seen->in_flight == 0 || one_stream(flight, 0) != FLIGHT_STREAMS;

	if (seen->entering == 0 && atomic_load(&flight->notes) == seen->notes && is_in_order)
		leave_out(flight, seen);
}

bool flight_look(struct flight *flight, const struct flight_seen *seen)
{
	uint64_t before = flight_longest(flight);

	if (!atomic_flag_test_and_set(&flight->is_moved)) {
		move(flight, seen);
		atomic_flag_clear(&flight->is_moved);
	}
	return flight_longest(flight) < before;
}

/* --- adding ----------------------------------------------------------------------------------------------------------- */

static void raise(_Atomic uint64_t *least, uint64_t to)
{
	uint64_t before = atomic_load(least);

	while (before < to && !atomic_compare_exchange_weak(least, &before, to))
		continue;
}

static void add_to(struct flight_part *part, uint64_t ns, uint64_t longest, uintptr_t stream)
{
	uint64_t before = atomic_load(&part->ns);
	uintptr_t others = 0;

	if (!atomic_compare_exchange_strong(&part->stream, &others, stream) && others != stream)
		atomic_store(&part->stream, FLIGHT_STREAMS);
	while (!atomic_compare_exchange_weak(&part->ns, &before, add(before, ns)))
		continue;
	raise(&part->longest_ns, longest);
}

/* With those that nobody has added since the last one. */
void flight_add(struct flight *flight, const struct flight_seen *seen, uint64_t ns, uintptr_t stream)
{
	uint64_t launched = seen->ended + seen->in_flight, missed = missed_of(flight, launched);
	uint64_t theirs = missed > 0 ? flight_longest(flight) : 0, last;

	atomic_fetch_add(&flight->notes, 1);
	do {
		last = atomic_load(&flight->last);
		add_to(part_at(flight, last), add(ns, times(missed, theirs)), max_u64(ns, theirs), stream);
	} while (atomic_load(&flight->last) != last);
	atomic_store(&flight->last_ns, ns);
	raise(&flight->covered, launched + 1);
}

void flight_cover(struct flight *flight, uint64_t launched)
{
	raise(&flight->covered, launched);
}

/* --- asking ----------------------------------------------------------------------------------------------------------- */

bool flight_is_in(const struct flight *flight, uintptr_t stream)
{
	return one_stream(flight, stream) == stream;
}

uint64_t flight_oldest(const struct flight *flight)
{
	return atomic_load(&part_at(flight, atomic_load(&flight->first))->longest_ns);
}

uint64_t flight_longest(const struct flight *flight)
{
	uint64_t longest = 0;

	for (uint64_t part = atomic_load(&flight->first); part <= atomic_load(&flight->last); part++)
		longest = max_u64(longest, atomic_load(&part_at(flight, part)->longest_ns));
	return longest != 0 ? longest : atomic_load(&flight->last_ns);
}

uint64_t flight_ns(const struct flight *flight, const struct flight_seen *seen)
{
	uint64_t in_flight = seen->in_flight + seen->entering;
	uint64_t longest = flight_longest(flight), sum = times(missed_of(flight, seen->ended + in_flight), longest);

	for (uint64_t part = atomic_load(&flight->first); part <= atomic_load(&flight->last); part++)
		sum = add(sum, atomic_load(&part_at(flight, part)->ns));
	return min_u64(sum, times(in_flight, longest));
}
