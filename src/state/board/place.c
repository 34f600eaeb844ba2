#include "layout.h"

#include "base/ring.h"
#include "state/revisions.h"

#include <string.h>

/* How often a place is read anew that is written meanwhile. */
#define ATTEMPTS 4

#define FLAG_SUSPENDED (UINT64_C(1) << 32)
#define FLAG_CLIENT (UINT64_C(1) << 33)
#define FLAG_BORROWER (UINT64_C(1) << 34)
#define FLAG_PAUSES (UINT64_C(1) << 35)

#define WEIGHT_SHIFT 8
#define WEIGHT_MASK UINT64_C(0xffffff)
#define PRIORITY_MASK UINT64_C(0xff)

static uint64_t pack_rank(const struct board_claim *claim)
{
	return (claim->priority & PRIORITY_MASK) | (claim->weight & WEIGHT_MASK) << WEIGHT_SHIFT |
	       (claim->is_suspended ? FLAG_SUSPENDED : 0) | (claim->is_client ? FLAG_CLIENT : 0) |
	       (claim->is_borrower ? FLAG_BORROWER : 0) | (claim->pauses ? FLAG_PAUSES : 0);
}

static void unpack_rank(struct board_claim *claim, uint64_t word)
{
	claim->priority = (uint32_t)(word & PRIORITY_MASK);
	claim->weight = (uint32_t)(word >> WEIGHT_SHIFT & WEIGHT_MASK);
	claim->is_suspended = (word & FLAG_SUSPENDED) != 0;
	claim->is_client = (word & FLAG_CLIENT) != 0;
	claim->is_borrower = (word & FLAG_BORROWER) != 0;
	claim->pauses = (word & FLAG_PAUSES) != 0;
}

static bool copy(const struct board_place *place, uint64_t words[BOARD_WORDS])
{
	bool is_whole = false;

	for (int attempt = 0; attempt < ATTEMPTS && !is_whole; attempt++) {
		uint64_t seen = atomic_load_explicit(&place->number, memory_order_acquire);

		ring_copy(words, place->versions[seen % BOARD_VERSIONS], BOARD_WORDS);
		is_whole = ring_is_whole(&place->number, seen, BOARD_VERSIONS);
	}
	return is_whole;
}

bool board_place_read(const struct board_place *place, struct board_owner *owner, struct board_claim *claim)
{
	uint64_t who = atomic_load_explicit(&place->who, memory_order_acquire), words[BOARD_WORDS];

	if (who == 0 || !copy(place, words) || words[BOARD_WHO] != who)
		return false;
	*owner = (struct board_owner){.who = who, .namespace = words[BOARD_NAMESPACE]};
	memcpy(&claim->pci, &words[BOARD_PCI], sizeof claim->pci);
	unpack_rank(claim, words[BOARD_RANK]);
	claim->lend_us = (uint32_t)words[BOARD_LEND];
	claim->group = words[BOARD_GROUP];
	claim->served_ns = words[BOARD_SERVED];
	claim->segment = words[BOARD_SEGMENT];
	claim->inode = words[BOARD_INODE];
	claim->written = words[BOARD_WRITTEN];
	memcpy(&claim->tpcs, &words[BOARD_TPCS], sizeof claim->tpcs);
	return true;
}

bool board_place_is_sound(const struct board_claim *claim)
{
	return claim->priority <= SEGMENT_PRIORITY_MAX && claim->weight >= 1 && claim->weight <= SEGMENT_WEIGHT_MAX &&
	       !tpcset_is_empty(&claim->tpcs);
}

void board_place_write(struct board_place *place, struct board_owner owner, const struct board_claim *claim)
{
	uint64_t number = atomic_load_explicit(&place->number, memory_order_relaxed) + 1;
	uint64_t words[BOARD_WORDS] = {
		[BOARD_WHO] = owner.who,
		[BOARD_NAMESPACE] = owner.namespace,
		[BOARD_RANK] = pack_rank(claim),
		[BOARD_LEND] = claim->lend_us,
		[BOARD_GROUP] = claim->group,
		[BOARD_SERVED] = claim->served_ns,
		[BOARD_SEGMENT] = claim->segment,
		[BOARD_INODE] = claim->inode,
		[BOARD_WRITTEN] = claim->written,
	};

	memcpy(&words[BOARD_PCI], &claim->pci, sizeof claim->pci);
	memcpy(&words[BOARD_TPCS], &claim->tpcs, sizeof claim->tpcs);
	ring_fill(place->versions[number % BOARD_VERSIONS], words, BOARD_WORDS);
	atomic_store_explicit(&place->number, number, memory_order_release);
}
