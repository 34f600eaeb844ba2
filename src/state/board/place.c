#include "layout.h"

#include "base/ring.h"
#include "state/revisions.h"

#include <string.h>

/* How often to read a place again when the place changes during the read. */
#define ATTEMPTS 4

bool board_place_read(const struct board_place *place, struct board_entry *entry)
{
	uint64_t who = atomic_load_explicit(&place->who, memory_order_acquire), words[BOARD_WORDS];
	bool is_whole = false;

	for (int attempt = 0; who != 0 && attempt < ATTEMPTS && !is_whole; attempt++) {
		uint64_t seen = atomic_load_explicit(&place->number, memory_order_acquire);

		ring_copy(words, place->versions[seen % BOARD_VERSIONS], BOARD_WORDS);
		is_whole = ring_is_whole(&place->number, seen, BOARD_VERSIONS);
	}
	if (!is_whole)
		return false;
	memcpy(entry, words, sizeof *entry);
	return entry->owner.who == who;
}

bool board_place_is_sound(const struct board_claim *claim)
{
	return claim->priority <= SEGMENT_PRIORITY_MAX && claim->weight >= 1 && claim->weight <= SEGMENT_WEIGHT_MAX &&
	       !tpcset_is_empty(&claim->tpcs);
}

void board_place_write(struct board_place *place, struct board_owner owner, const struct board_claim *claim)
{
	uint64_t number = atomic_load_explicit(&place->number, memory_order_relaxed) + 1;
	const struct board_entry entry = {.owner = owner, .claim = *claim};
	uint64_t words[BOARD_WORDS];

	memcpy(words, &entry, sizeof entry);
	ring_fill(place->versions[number % BOARD_VERSIONS], words, BOARD_WORDS);
	atomic_store_explicit(&place->number, number, memory_order_release);
}
