#include "in_flight.h"

#include "base/clock.h"
#include "base/extremes.h"

/* Of the launches in flight, a look goes through the oldest: launches of so many streams may run. */
#define LOOKED_AT 16

/* Both clocks drift, by less than a microsecond in so long. */
#define PERIOD_NS UINT64_C(1000000000)

static struct flying *at(struct in_flight *in_flight, uint64_t ticket)
{
	return &in_flight->list[ticket % IN_FLIGHT_MAX];
}

uint64_t in_flight_add(struct in_flight *in_flight, uint32_t open, uint64_t ns, struct launch_end end)
{
	if (!in_flight_has_room(in_flight))
		return 0;
	struct flying *launch = at(in_flight, ++in_flight->added);

	launch->ns = ns;
	launch->open = open;
	launch->is_gone = false;
	launch->length = NULL;
	in_flight->sum += ns;
	in_flight->wide += open != 0 ? ns : 0;
	in_flight->unknown += ns == 0;
	in_flight_tell(in_flight, in_flight->added, end);
	return in_flight->added;
}

void in_flight_tell(struct in_flight *in_flight, uint64_t ticket, struct launch_end end)
{
	struct flying *launch = at(in_flight, ticket);

	if (end.number == IN_FLIGHT_UNTIL_IDLE)
		atomic_fetch_add(&in_flight->until_idle, 1);
	atomic_store_explicit(&launch->at, (uintptr_t)end.at, memory_order_relaxed);
	atomic_store_explicit(&launch->number, end.number, memory_order_release);
}

/* --- lengths ------------------------------------------------------------------------------------------------------ */

void in_flight_learn(struct in_flight *in_flight, uint64_t ticket, struct length *length, struct launch_end ahead,
                     uint64_t launched_ns)
{
	struct flying *launch = at(in_flight, ticket);

	if (ticket == 0)
		return;
	launch->length = length;
	launch->key = atomic_load_explicit(&length->key, memory_order_relaxed);
	launch->ahead = ahead;
	launch->launched_ns = launched_ns;
}

void in_flight_disturb(struct in_flight *in_flight)
{
	for (uint64_t ticket = in_flight->gone + 1; ticket <= in_flight->added; ticket++) {
		if (at(in_flight, ticket)->open != 0)
			at(in_flight, ticket)->length = NULL;
	}
}

/* A cell (state/kernels/timestamps.h) has the number and the time. A later launch has a higher number. */
static bool read_time(struct launch_end end, uint64_t *time)
{
	bool is_there = __atomic_load_n(&end.at[0], __ATOMIC_ACQUIRE) == end.number;

	*time = __atomic_load_n(&end.at[1], __ATOMIC_ACQUIRE);
	return is_there && __atomic_load_n(&end.at[0], __ATOMIC_RELAXED) == end.number;
}

/* An end at this time of the GPU was before now. */
static void set_clock(struct in_flight_clock *clock, uint64_t time, uint64_t now)
{
	int64_t ahead = (int64_t)(time - now);

	if (clock->began == 0 || now - clock->began > PERIOD_NS) {
		clock->ahead[1] = clock->began != 0 ? clock->ahead[0] : ahead;
		clock->ahead[0] = ahead;
		clock->began = now;
	}
	clock->ahead[0] = max_i64(clock->ahead[0], ahead);
}

static bool read_begin(const struct in_flight_clock *clock, const struct flying *launch, uint64_t *begin)
{
	*begin = launch->launched_ns + (uint64_t)max_i64(clock->ahead[0], clock->ahead[1]);
	return launch->ahead.number == 0 || read_time(launch->ahead, begin);
}

/* 0 if the length is not known. */
static uint64_t length_of(struct in_flight_clock *clock, const struct flying *launch, struct launch_end end)
{
	uint64_t now = process_clock_ns(), begin, time, ns = 0;

	if (end.number == IN_FLIGHT_UNTIL_IDLE) {
		ns = now - launch->launched_ns;
	} else if (end.number != 0 && read_time(end, &time)) {
		set_clock(clock, time, now);
		ns = read_begin(clock, launch, &begin) && time > begin ? time - begin : 0;
	}
	return ns;
}

/* Returns the length of a wide launch. */
static uint64_t learn(struct in_flight_clock *clock, const struct flying *launch, struct launch_end end)
{
	uint64_t ns = length_of(clock, launch, end);

	if (ns > 0)
		lengths_note(launch->length, launch->key, launch->open != 0 ? LENGTH_MORE : LENGTH_PART, ns);
	return launch->open != 0 ? ns : 0;
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

static bool has_ended(struct launch_end end, bool is_idle)
{
	bool ended = end.number == 0 || (end.number == IN_FLIGHT_UNTIL_IDLE && is_idle);

	if (end.number != 0 && end.number < IN_FLIGHT_UNTIL_IDLE)
		ended = __atomic_load_n(end.at, __ATOMIC_ACQUIRE) >= end.number;
	return ended;
}

static void remove_launch(struct in_flight *in_flight, struct flying *launch)
{
	launch->is_gone = true;
	in_flight->sum -= launch->ns;
	in_flight->wide -= launch->open != 0 ? launch->ns : 0;
	in_flight->unknown -= launch->ns == 0;
}

/* Removes the launch if the launch has ended. */
static void look(struct in_flight *in_flight, struct flying *launch, bool is_idle, uint64_t *longest)
{
	uint64_t number = atomic_load_explicit(&launch->number, memory_order_acquire);
	uintptr_t at = atomic_load_explicit(&launch->at, memory_order_relaxed);
	const struct launch_end end = {(const volatile uint64_t *)at, number};

	if (launch->is_gone || !has_ended(end, is_idle))
		return;
	if (launch->length)
		*longest = max_u64(*longest, learn(&in_flight->clock, launch, end));
	if (number == IN_FLIGHT_UNTIL_IDLE)
		atomic_fetch_sub(&in_flight->until_idle, 1);
	remove_launch(in_flight, launch);
}

static bool is_wide_with(struct flying *launch, struct launch_end end)
{
	return launch->open != 0 && !launch->is_gone && atomic_load(&launch->number) == end.number &&
	       atomic_load(&launch->at) == (uintptr_t)end.at;
}

/* Launches of a stream are in the order of their tickets. */
const struct flying *in_flight_forget(struct in_flight *in_flight, struct launch_end end, uint64_t *ticket)
{
	uint64_t first = in_flight->gone + 1, count = in_flight->added - in_flight->gone;
	uint64_t behind = *ticket >= first && *ticket < in_flight->added ? *ticket + 1 - first : 0;
	struct flying *found = NULL;

	for (uint64_t i = 0; i < count && !found; i++) {
		uint64_t next = first + (behind + i) % count;

		if (is_wide_with(at(in_flight, next), end)) {
			found = at(in_flight, next);
			*ticket = next;
		}
	}
	if (found)
		remove_launch(in_flight, found);
	return found;
}

uint64_t in_flight_sweep(struct in_flight *in_flight, bool is_idle)
{
	uint64_t ticket = in_flight->gone, longest = 0;
	unsigned int stay = 0;

	while (stay < LOOKED_AT && ticket < in_flight->added) {
		struct flying *launch = at(in_flight, ++ticket);

		look(in_flight, launch, is_idle, &longest);
		stay += !launch->is_gone;
		in_flight->gone += stay == 0;
	}
	return longest;
}
