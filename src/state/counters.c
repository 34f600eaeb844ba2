/* Counting in a segment: what its owner's threads count, and what that comes to. */
#include "layout.h"

/* --- launches ------------------------------------------------------------------------------------------------ */

/* Those that threads of this process have: bit n stands for place n, and the first is nobody's. Not in the shared memory:
 * whatever stands there, two threads have two places. */
#define NOBODYS UINT64_C(1)

static _Atomic uint64_t places_taken = NOBODYS;

_Static_assert(SEGMENT_PLACES == 64, "a bit for each");

struct segment_place *segment_take_place(const struct segment *segment)
{
	uint64_t taken = atomic_load_explicit(&places_taken, memory_order_relaxed), free = ~taken;

	/* Bounded: where others take or give all the time, the common place will do. */
	for (int attempt = 0; attempt < SEGMENT_PLACES && free != 0; attempt++) {
		int place = __builtin_ctzll(free);

		if (atomic_compare_exchange_strong_explicit(&places_taken, &taken, taken | UINT64_C(1) << place,
		                                            memory_order_acquire, memory_order_relaxed))
			return &segment->places[place];
		free = ~taken;
	}
	return NULL;
}

void segment_give_place(const struct segment *segment, const struct segment_place *place)
{
	atomic_fetch_and_explicit(&places_taken, ~(UINT64_C(1) << (place - segment->places)), memory_order_release);
}

void segment_free_places(void)
{
	atomic_store(&places_taken, NOBODYS);
}

void segment_keep_places(void)
{
	atomic_store(&places_taken, UINT64_MAX);
}

/* --- what happened to them ------------------------------------------------------------------------------------- */

const char *segment_reason_text(enum segment_reason reason)
{
	static const char *const texts[] = {
#define REASON_TEXT(identifier, text) text,
		SEGMENT_REASONS(REASON_TEXT)
#undef REASON_TEXT
	};

	return texts[reason];
}

void segment_count_reason(const struct segment *segment, enum segment_reason reason)
{
	atomic_fetch_add_explicit(&segment->memory->reasons[reason], 1, memory_order_relaxed);
}

void segment_count_refresh(const struct segment *segment)
{
	atomic_fetch_add_explicit(&segment->memory->refreshed, 1, memory_order_relaxed);
}

/* --- read -------------------------------------------------------------------------------------------------------- */

static uint64_t sum_launches(const struct segment_memory *memory, bool restricted)
{
	uint64_t sum = 0;

	for (int place = 0; place < SEGMENT_PLACES; place++)
		sum = segment_sum(sum, atomic_load_explicit(&memory->places[place].launches[restricted], memory_order_relaxed));
	return sum;
}

void segment_read_counters(const struct segment *segment, struct segment_counters *counters)
{
	const struct segment_memory *memory = segment->memory;

	counters->restricted = sum_launches(memory, true);
	counters->unrestricted = sum_launches(memory, false);
	counters->refreshed = atomic_load_explicit(&memory->refreshed, memory_order_relaxed);
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++)
		counters->reasons[reason] =
			atomic_load_explicit(&memory->reasons[reason], memory_order_relaxed);
}
