#include "claims.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/releases.h"
#include "state/kernels/counts_read.h"

#include <stddef.h>
#include <string.h>

/* --- making claims ------------------------------------------------------------------------------------------------ */

/* The sum of all claims on a GPU. */
struct sets {
	struct tpcset own;
	struct tpcset higher; /* of programs of a higher priority */
	struct tpcset kept;   /* of other programs that do not lend */
	const struct claims_rules *rules;
};

static bool is_higher(const struct sets *sets, const struct peer *peer)
{
	return peer->is.claim.priority > sets->rules->priority && tpcset_overlap(&peer->is.claim.tpcs, &sets->own);
}

#define RESTS_NS UINT64_C(100000000)

/* A program at rest has no part in LIMIT. The next look of each borrower sees when the program launches again. */
static bool may_borrow(const struct peer *peer)
{
	bool is_seen = peer->view.segment || peer->pooled;
	bool rests = is_seen && peer->demand.is_known && demand_idle_ns(&peer->demand) >= RESTS_NS;

	return peer->is.claim.is_client && peer->is.claim.is_borrower && !rests;
}

static struct sets see_sets(struct pci_address pci, const struct claims_rules *rules)
{
	struct sets sets = {.own = peers_own(pci), .rules = rules};
	const struct peer *peer;

	for (unsigned int i = 0; (peer = peers_next(pci, &i));) {
		const struct board_claim *claim = &peer->is.claim;

		if (claim->is_client && is_higher(&sets, peer))
			sets.higher = tpcset_or(&sets.higher, &claim->tpcs);
		else if (claim->is_client && claim->lend_us == 0)
			sets.kept = tpcset_or(&sets.kept, &claim->tpcs);
	}
	return sets;
}

static struct tpcset what_it_gives(const struct sets *sets, const struct peer *peer)
{
	struct tpcset gives = {{0}}, lent = tpcset_without(&peer->is.claim.tpcs, &sets->own);

	if (is_higher(sets, peer))
		gives = tpcset_and(&peer->is.claim.tpcs, &sets->own);
	if (sets->rules->borrows && peer->is.claim.lend_us > 0 && peer->demand.is_known) {
		lent = tpcset_and(&lent, &sets->rules->borrow);
		lent = tpcset_without(&lent, &sets->kept);
		gives = tpcset_or(&gives, &lent);
	}
	return gives;
}

/* News from the pool are late: by a quarter of LIMIT when a program writes, and by a quarter when this process reads.
 * Half of LIMIT is left for lending. */
#define POOL_LATE_PART 4

/* The number is read first, and is a different number once there are more places. */
static void find_places(struct claim *it, const struct peer *peer)
{
	it->pooled = peer->pooled;
	it->is_unknown = peer->pooled ? atomic_load(&peer->pooled->is_unknown) : !peer->view.segment;
	if (it->pooled)
		it->limit_ns -= 2 * (it->limit_ns / POOL_LATE_PART);
	if (it->pooled || it->is_unknown)
		return;
	it->number = counts_view_number(&peer->view);
	it->number_then = atomic_load(it->number);
	it->place_count = counts_view_places(&peer->view, peer->is.claim.pci, it->places, CLAIMS_PLACES);
	it->is_unknown = it->place_count > CLAIMS_PLACES || counts_view_has_gap(&peer->view) || !peer->demand.is_known;
	it->place_count = it->is_unknown ? 0 : it->place_count;
	for (unsigned int i = 0; i < it->place_count; i++)
		it->is_unknown |= !counts_place_is_exact(it->places[i]);
}

/* With this process. No program borrows TPCs of its own. A foreign group of the pool is a party, whatever number of
 * programs the group claims; the programs of each party share the part of the party. The pool shows all programs of the
 * own group, and the board shows some of the same programs. */
static uint64_t borrowers_from(const struct peer *lender, struct pci_address pci)
{
	uint64_t parties = 1, near = 0;
	const struct peer *peer;

	for (unsigned int i = 0; (peer = peers_next(pci, &i));) {
		bool counts = may_borrow(peer) && !tpcset_is_subset(&lender->is.claim.tpcs, &peer->is.claim.tpcs);

		near += counts && !peer->pooled;
		parties += counts && peer->pooled && peer->pooled->borrowers > 0;
	}
	return parties * (1 + max_u64(near, pool_own_borrowers(pci)));
}

/* Where nobody knows when a program is idle: a lender never is, and a program of a higher priority is where nothing has
 * moved for a while. */
static void add(struct claims *made, const struct peer *peer, const struct tpcset *gives, bool is_before)
{
	struct claim *it = &made->list[made->count++];
	const struct board_claim *said = &peer->is.claim;

	it->lender = peer->pooled ? SEGMENT_LENDER_GROUP | said->group : (uint64_t)peer->is.pid;
	it->gives = *gives;
	it->takes = said->tpcs;
	it->limit_ns = (said->lend_us > 0 ? said->lend_us : SEGMENT_LEND_USUAL_US) * UINT64_C(1000);
	it->borrowers = said->lend_us > 0 ? borrowers_from(peer, said->pci) : 1;
	find_places(it, peer);
	it->is_open = is_before && !peer->demand.wants && it->is_unknown;
}

/* Programs without room in the list keep their TPCs. */
static void see_each(struct claims *made, struct pci_address pci, const struct sets *sets)
{
	struct tpcset left_out = {{0}};
	const struct peer *peer;

	for (unsigned int i = 0; (peer = peers_next(pci, &i));) {
		struct tpcset gives = what_it_gives(sets, peer);

		if (!peer->is.claim.is_client || tpcset_is_empty(&gives))
			continue;
		if (made->count < CLAIMS_MAX)
			add(made, peer, &gives, is_higher(sets, peer));
		else
			left_out = tpcset_or(&left_out, &peer->is.claim.tpcs);
	}
	for (unsigned int i = 0; i < made->count; i++)
		made->list[i].gives = tpcset_without(&made->list[i].gives, &left_out);
}

void claims_see_own(struct claims *made, struct pci_address pci, bool is_known)
{
	unsigned int count = releases_places(pci, made->own, CLAIMS_PLACES);

	made->own_count = count <= CLAIMS_PLACES ? count : CLAIMS_PLACES;
	made->own_is_known = is_known && count > 0 && count <= CLAIMS_PLACES;
	for (unsigned int i = 0; i < made->own_count; i++)
		made->own_is_known &= counts_place_is_exact(made->own[i]);
}

void claims_see(struct claims *made, struct pci_address pci, const struct claims_rules *rules)
{
	struct sets sets = see_sets(pci, rules);

	memset(made, 0, sizeof *made);
	made->all_own = sets.own;
	made->part = tpcset_without(&sets.own, &sets.higher);
	made->has_part = !tpcset_is_empty(&made->part);
	made->is_narrow = made->has_part && !tpcset_equal(&made->part, &sets.own);
	see_each(made, pci, &sets);
	claims_see_own(made, pci, rules->is_known);
}

bool claims_are_equal(const struct claims *one, const struct claims *other)
{
	return memcmp(one, other, offsetof(struct claims, idle)) == 0;
}

/* --- reading claims ----------------------------------------------------------------------------------------------- */

static uint64_t sum(const struct counts_place *const places[], unsigned int count,
                    uint64_t of(const struct counts_place *))
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < count; i++)
		all += of(places[i]);
	return all;
}

/* Late news are no news: then the claim wants. */
static uint64_t look_at_pool(const struct claim *it, struct lending_claim *seen, uint64_t *now)
{
	uint64_t moves = atomic_load(&it->pooled->moves), late_ns = 2 * it->limit_ns / POOL_LATE_PART;

	*now = *now != 0 ? *now : process_clock_ns();
	bool is_busy = atomic_load(&it->pooled->wants) || atomic_load(&it->pooled->is_unknown) ||
	               !pool_is_fresh(*now, late_ns);

	return lending_idle_ns(seen, moves, is_busy, *now, lending_rest_ns(it->limit_ns));
}

/* A launch is in `launches`, or is seen in flight; or the next look finds a different number. */
static uint64_t look(const struct claim *it, struct lending_claim *seen, uint64_t *now)
{
	uint64_t long_ns = lending_rest_ns(it->limit_ns);

	if (it->is_unknown)
		return it->is_open ? long_ns : 0;
	if (it->pooled)
		return look_at_pool(it, seen, now);
	uint64_t launches = sum(it->places, it->place_count, counts_place_launches);

	if (lending_is_at_rest(seen, launches) &&
	    atomic_load_explicit(it->number, memory_order_relaxed) == it->number_then)
		return long_ns;
	bool is_busy = sum(it->places, it->place_count, counts_place_in_flight) > 0 ||
	               atomic_load(it->number) != it->number_then;

	if (!is_busy && *now == 0)
		*now = process_clock_ns();
	return lending_idle_ns(seen, launches, is_busy, *now, long_ns);
}

void claims_look(struct claims *claims, struct claims_idle *idle)
{
	idle->now = 0;
	idle->open = 0;
	for (unsigned int i = 0; i < claims->count; i++) {
		idle->ns[i] = look(&claims->list[i], &claims->idle[i], &idle->now);
		idle->open |= (uint32_t)(idle->ns[i] > 0) << i;
	}
}

uint64_t claims_own_in_flight(const struct claims *claims)
{
	return sum(claims->own, claims->own_count, counts_place_in_flight);
}

struct tpcset claims_tpcs(const struct claims *claims, uint32_t open)
{
	struct tpcset more = {{0}}, taken = {{0}};

	for (unsigned int i = 0; i < claims->count; i++) {
		const struct claim *it = &claims->list[i];

		if (open >> i & 1)
			more = tpcset_or(&more, &it->gives);
		else
			taken = tpcset_or(&taken, &it->takes);
	}
	more = tpcset_without(&more, &taken);
	return tpcset_or(&more, &claims->part);
}
