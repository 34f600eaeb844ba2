/* The counters in a segment: counting by the owner's threads, and reading. */
#include "layout.h"

/* --- launches ------------------------------------------------------------------------------------------------ */

/* The counter slots that threads of this process have taken: bit n stands for slot n. Slot 0 is shared, and is never
 * taken. This is not in the shared memory: whatever is written there, two threads have two slots. */
#define SHARED_SLOT UINT64_C(1)

static _Atomic uint64_t slots_taken = SHARED_SLOT;

_Static_assert(COUNTER_SLOTS == 64, "a bit for each");

struct counter_slot *counter_slot_take(const struct segment *segment)
{
	uint64_t taken = atomic_load_explicit(&slots_taken, memory_order_relaxed), free = ~taken;

	/* Bounded: if other threads take or give all the time, the thread counts in the shared slot. */
	for (int attempt = 0; attempt < COUNTER_SLOTS && free != 0; attempt++) {
		int slot = __builtin_ctzll(free);

		if (atomic_compare_exchange_strong_explicit(&slots_taken, &taken, taken | UINT64_C(1) << slot,
		                                            memory_order_acquire, memory_order_relaxed))
			return &segment->slots[slot];
		free = ~taken;
	}
	return NULL;
}

void counter_slot_give_back(const struct segment *segment, const struct counter_slot *slot)
{
	atomic_fetch_and_explicit(&slots_taken, ~(UINT64_C(1) << (slot - segment->slots)), memory_order_release);
}

void counter_slots_free(void)
{
	atomic_store(&slots_taken, SHARED_SLOT);
}

void counter_slots_keep(void)
{
	atomic_store(&slots_taken, UINT64_MAX);
}

/* --- reasons --------------------------------------------------------------------------------------------------- */

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

/* --- time -------------------------------------------------------------------------------------------------------- */

const char *segment_time_text(enum segment_time_state state)
{
	static const char *const texts[] = {
#define TIME_TEXT(identifier, text) text,
		SEGMENT_TIME_STATES(TIME_TEXT)
#undef TIME_TEXT
	};

	return texts[state];
}

void segment_set_time_state(const struct segment *segment, enum segment_time_state state, uint64_t number)
{
	atomic_store_explicit(&segment->memory->time_state, state, memory_order_relaxed);
	atomic_store_explicit(&segment->memory->time_number, number, memory_order_release);
}

void segment_set_time_used(const struct segment *segment, uint64_t present_us, uint64_t aside_us, uint64_t bounded)
{
	atomic_store_explicit(&segment->memory->present_us, present_us, memory_order_relaxed);
	atomic_store_explicit(&segment->memory->aside_us, aside_us, memory_order_relaxed);
	atomic_store_explicit(&segment->memory->bounded, bounded, memory_order_relaxed);
}

void segment_set_time_held(const struct segment *segment, uint64_t launches)
{
	atomic_store_explicit(&segment->memory->held, launches, memory_order_relaxed);
}

void segment_set_borrowed(const struct segment *segment, const struct segment_borrowed *borrowed)
{
	struct segment_memory *memory = segment->memory;

	for (int word = 0; word < TPCSET_WORDS; word++)
		atomic_store_explicit(&memory->borrowed[word], borrowed->tpcs.words[word], memory_order_relaxed);
	atomic_store_explicit(&memory->borrowed_tpc_us, borrowed->tpc_us, memory_order_relaxed);
	atomic_store_explicit(&memory->overruns, borrowed->overruns, memory_order_relaxed);
	for (int i = 0; i < SEGMENT_LOANS; i++) {
		atomic_store_explicit(&memory->loans[i].tpc_us, borrowed->loans[i].tpc_us, memory_order_relaxed);
		atomic_store_explicit(&memory->loans[i].lender, borrowed->loans[i].lender, memory_order_relaxed);
	}
}

struct segment_borrowed segment_read_borrowed(const struct segment *segment)
{
	const struct segment_memory *memory = segment->memory;
	struct segment_borrowed borrowed = {
		.tpc_us = atomic_load_explicit(&memory->borrowed_tpc_us, memory_order_relaxed),
		.overruns = atomic_load_explicit(&memory->overruns, memory_order_relaxed),
	};

	for (int word = 0; word < TPCSET_WORDS; word++)
		borrowed.tpcs.words[word] = atomic_load_explicit(&memory->borrowed[word], memory_order_relaxed);
	for (int i = 0; i < SEGMENT_LOANS; i++) {
		borrowed.loans[i].lender = atomic_load_explicit(&memory->loans[i].lender, memory_order_relaxed);
		borrowed.loans[i].tpc_us = atomic_load_explicit(&memory->loans[i].tpc_us, memory_order_relaxed);
	}
	return borrowed;
}

void segment_read_time(const struct segment *segment, struct segment_time *time)
{
	const struct segment_memory *memory = segment->memory;

	time->number = atomic_load_explicit(&memory->time_number, memory_order_acquire);
	uint64_t state = atomic_load_explicit(&memory->time_state, memory_order_relaxed);

	time->state = state < SEGMENT_TIME_STATE_COUNT ? (enum segment_time_state)state : SEGMENT_TIME_NONE;
	/* There was no limit in a revision before this one. */
	if (time->state == SEGMENT_TIME_UNLIMITED && time->number != segment_revision_number(segment))
		time->state = SEGMENT_TIME_PENDING;
	time->present_us = atomic_load_explicit(&memory->present_us, memory_order_relaxed);
	time->aside_us = atomic_load_explicit(&memory->aside_us, memory_order_relaxed);
	time->bounded = atomic_load_explicit(&memory->bounded, memory_order_relaxed);
	time->held = atomic_load_explicit(&memory->held, memory_order_relaxed);
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

static uint64_t sum_launches(const struct segment_memory *memory, bool restricted)
{
	uint64_t sum = 0;

	for (int slot = 0; slot < COUNTER_SLOTS; slot++)
		sum = segment_sum(sum, atomic_load_explicit(&memory->slots[slot].launches[restricted], memory_order_relaxed));
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
