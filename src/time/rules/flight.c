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

static void begin_part(struct flight *flight, uint64_t last, uint64_t from)
{
	struct flight_part *part = part_at(flight, last);

	atomic_store(&part->from, from);
	atomic_store(&part->ns, 0);
	atomic_store(&part->longest_ns, 0);
	atomic_store(&flight->last, last);
}

/* Parts of which all has ended are left out, and what comes next gets a new one where there is room. */
static void move(struct flight *flight, uint64_t ended, uint64_t number)
{
	uint64_t first = atomic_load(&flight->first), last = atomic_load(&flight->last);

	while (first < last && ended >= atomic_load(&part_at(flight, first + 1)->from))
		first++;
	atomic_store(&flight->first, first);
	if (last - first + 1 < FLIGHT_PARTS && atomic_load(&part_at(flight, last)->ns) > 0)
		begin_part(flight, last + 1, number);
}

static void clear(struct flight *flight, uint64_t number)
{
	uint64_t last = atomic_load(&flight->last) + 1;

	begin_part(flight, last, number);
	atomic_store(&flight->first, last);
	atomic_store(&flight->number, number);
	atomic_store(&flight->stream, 0);
}

bool flight_look(struct flight *flight, uint64_t ended, uint64_t in_flight)
{
	uint64_t before = flight_longest(flight);

	if (!atomic_flag_test_and_set(&flight->is_moved)) {
		if (in_flight == 0)
			clear(flight, ended);
		else if (atomic_load(&flight->stream) != FLIGHT_STREAMS)
			move(flight, ended, max_u64(atomic_load(&flight->number), ended + in_flight));
		atomic_flag_clear(&flight->is_moved);
	}
	return flight_longest(flight) < before;
}

static void raise(_Atomic uint64_t *least, uint64_t to)
{
	uint64_t before = atomic_load(least);

	while (before < to && !atomic_compare_exchange_weak(least, &before, to))
		continue;
}

/* Those that were not added are longer than none that was. */
static void add_to(struct flight_part *part, uint64_t ns)
{
	uint64_t before = atomic_load(&part->ns);

	while (!atomic_compare_exchange_weak(&part->ns, &before, add(before, ns)))
		continue;
}

void flight_add(struct flight *flight, uint64_t number, uint64_t ns, uintptr_t stream)
{
	struct flight_part *part = part_at(flight, atomic_load(&flight->last));
	uint64_t before = atomic_load(&flight->number), missed = number > before + 1 ? number - before - 1 : 0;
	uintptr_t others = 0;

	if (!atomic_compare_exchange_strong(&flight->stream, &others, stream) && others != stream)
		atomic_store(&flight->stream, FLIGHT_STREAMS);
	add_to(part, add(ns, times(missed, flight_longest(flight))));
	raise(&part->longest_ns, ns);
	atomic_store(&flight->last_ns, ns);
	raise(&flight->number, number);
}

void flight_number(struct flight *flight, uint64_t number)
{
	raise(&flight->number, number);
}

uint64_t flight_longest(const struct flight *flight)
{
	uint64_t longest = 0;

	for (uint64_t part = atomic_load(&flight->first); part <= atomic_load(&flight->last); part++)
		longest = max_u64(longest, atomic_load(&part_at(flight, part)->longest_ns));
	return longest != 0 ? longest : atomic_load(&flight->last_ns);
}

uint64_t flight_ns(const struct flight *flight, uint64_t ended, uint64_t in_flight)
{
	uint64_t number = atomic_load(&flight->number), missed = ended + in_flight - min_u64(ended + in_flight, number);
	uint64_t longest = flight_longest(flight), sum = times(missed, longest);

	for (uint64_t part = atomic_load(&flight->first); part <= atomic_load(&flight->last); part++)
		sum = add(sum, atomic_load(&part_at(flight, part)->ns));
	return min_u64(sum, times(in_flight, longest));
}
