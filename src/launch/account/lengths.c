#include "lengths.h"

#include "base/extremes.h"

#include <string.h>

#define NEAR 4  /* places where a key may be */
#define FALL 8  /* part of the difference by which a length falls */

static struct length lengths[LENGTHS];
static _Atomic uint32_t replaced;

static void forget_length(struct length *length, uint64_t key)
{
	atomic_store(&length->key, 0);
	atomic_store(&length->ns[LENGTH_PART], 0);
	atomic_store(&length->ns[LENGTH_MORE], 0);
	atomic_store(&length->until, 0);
	atomic_store(&length->key, key);
}

static uint64_t key_of(const struct launched_work *work)
{
	uint64_t mixed = (uintptr_t)work->what ^ work->grid[0] * UINT64_C(0x9e3779b97f4a7c15) ^
	                 work->grid[1] * UINT64_C(0xc2b2ae3d27d4eb4f) ^ work->grid[2] * UINT64_C(0x165667b19e3779f9);

	mixed *= UINT64_C(0xbf58476d1ce4e5b9);
	return (mixed ^ mixed >> 29) | 1;
}

struct length *lengths_find(const struct launched_work *work)
{
	uint64_t key = key_of(work);
	struct length *near = &lengths[(key >> 32) % (LENGTHS / NEAR) * NEAR], *found = NULL;

	for (int i = NEAR - 1; i >= 0; i--) {
		uint64_t there = atomic_load_explicit(&near[i].key, memory_order_acquire);

		if (there == key)
			return &near[i];
		found = there == 0 ? &near[i] : found;
	}
	/* In turn. By the key, two lengths in use could take the same place again and again, among old lengths. */
	if (!found)
		found = &near[atomic_fetch_add(&replaced, 1) % NEAR];
	forget_length(found, key);
	return found;
}

unsigned int lengths_number(const struct length *length)
{
	return (unsigned int)(length - lengths);
}

struct length *lengths_at(unsigned int number)
{
	return &lengths[number % LENGTHS];
}

void lengths_note(struct length *length, uint64_t key, enum length_place place, uint64_t ns)
{
	uint32_t before = (uint32_t)lengths_ns(length, place), now = (uint32_t)max_u64(1, min_u64(ns, UINT32_MAX));

	if (before > now)
		now = before - (before - now) / FALL;
	if (atomic_load(&length->key) == key)
		atomic_store_explicit(&length->ns[place], now, memory_order_relaxed);
}

void lengths_fall(struct length *length, uint32_t part)
{
	uint32_t ns = (uint32_t)lengths_ns(length, LENGTH_MORE);

	atomic_store_explicit(&length->ns[LENGTH_MORE], ns - ns / part, memory_order_relaxed);
}

void lengths_forget(void)
{
	memset(lengths, 0, sizeof lengths);
}
