#include "in_flight.h"

/* An old launch of a stream may hide the ends of newer launches. So now and then a look goes through all. */
#define STUCK 32

static struct flying *at(struct in_flight *in_flight, uint64_t ticket)
{
	return &in_flight->list[ticket % IN_FLIGHT_MAX];
}

uint64_t in_flight_add(struct in_flight *in_flight, uint32_t claims, uint64_t ns, struct launch_end end)
{
	if (in_flight->added - in_flight->gone == IN_FLIGHT_MAX)
		return 0;
	struct flying *launch = at(in_flight, ++in_flight->added);

	launch->ns = ns;
	launch->claims = claims;
	launch->is_gone = false;
	in_flight->sum += ns;
	in_flight->unknown += ns == 0;
	for (unsigned int i = 0; claims >> i != 0; i++)
		in_flight->sums[i] += claims >> i & 1 ? ns : 0;
	atomic_store_explicit(&launch->number, IN_FLIGHT_CALLED, memory_order_relaxed);
	if (end.number != IN_FLIGHT_CALLED)
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

bool in_flight_has_ended(struct launch_end end, bool is_idle)
{
	bool ended = end.number == 0 || (end.number == IN_FLIGHT_UNTIL_IDLE && is_idle);

	if (end.number != 0 && end.number < IN_FLIGHT_UNTIL_IDLE)
		ended = __atomic_load_n(end.at, __ATOMIC_ACQUIRE) >= end.number;
	return ended;
}

static bool has_ended(struct flying *launch, bool is_idle)
{
	uint64_t number = atomic_load_explicit(&launch->number, memory_order_acquire);
	uintptr_t at = atomic_load_explicit(&launch->at, memory_order_relaxed);

	return in_flight_has_ended((struct launch_end){(const volatile uint64_t *)at, number}, is_idle);
}

static void remove_ended(struct in_flight *in_flight, struct flying *launch)
{
	if (atomic_load_explicit(&launch->number, memory_order_relaxed) == IN_FLIGHT_UNTIL_IDLE)
		atomic_fetch_sub(&in_flight->until_idle, 1);
	launch->is_gone = true;
	in_flight->sum -= launch->ns;
	in_flight->unknown -= launch->ns == 0;
	for (unsigned int i = 0; launch->claims >> i != 0; i++)
		in_flight->sums[i] -= launch->claims >> i & 1 ? launch->ns : 0;
}

static void look_at_all(struct in_flight *in_flight, bool is_idle)
{
	for (uint64_t ticket = in_flight->gone + 1; ticket <= in_flight->added; ticket++) {
		struct flying *launch = at(in_flight, ticket);

		if (!launch->is_gone && has_ended(launch, is_idle))
			remove_ended(in_flight, launch);
	}
	in_flight->stuck = 0;
}

void in_flight_sweep(struct in_flight *in_flight, bool is_idle)
{
	uint64_t before = in_flight->gone;
	bool goes_on = true;

	while (goes_on && in_flight->gone < in_flight->added) {
		struct flying *oldest = at(in_flight, in_flight->gone + 1);

		if (!oldest->is_gone && has_ended(oldest, is_idle))
			remove_ended(in_flight, oldest);
		goes_on = oldest->is_gone;
		in_flight->gone += goes_on;
	}
	in_flight->stuck = in_flight->gone == before ? in_flight->stuck + 1 : 0;
	if (in_flight->stuck >= STUCK)
		look_at_all(in_flight, is_idle);
}

void in_flight_spread(struct in_flight *in_flight)
{
	uint64_t all = 0;

	for (uint64_t ticket = in_flight->gone + 1; ticket <= in_flight->added; ticket++) {
		struct flying *launch = at(in_flight, ticket);
		bool is_wide = !launch->is_gone && launch->claims != 0;

		launch->claims = is_wide ? (UINT32_C(1) << CLAIMS_MAX) - 1 : 0;
		all += is_wide ? launch->ns : 0;
	}
	for (unsigned int i = 0; i < CLAIMS_MAX; i++)
		in_flight->sums[i] = all;
}
