#include "others.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/releases.h"
#include "state/kernels/counts_read.h"
#include "state/revisions.h"

#include <string.h>

/* --- making it -------------------------------------------------------------------------------------------------------- */

/* What the claims on a GPU say. */
struct claims {
	struct tpcset own;
	struct tpcset higher; /* TPCs of those of a higher priority, */
	struct tpcset kept;   /* and of others who do not lend */
	uint64_t borrowers;   /* with this process */
};

static bool is_higher(const struct claims *claims, const struct peer *peer, const struct others_rules *rules)
{
	return peer->is.claim.priority > rules->priority && tpcset_overlap(&peer->is.claim.tpcs, &claims->own);
}

static struct claims see_claims(struct pci_address pci, const struct others_rules *rules)
{
	struct claims claims = {.own = peers_own(pci), .borrowers = rules->borrows};
	const struct peer *peer;

	for (unsigned int i = 0; (peer = peers_on(pci, i)); i++) {
		const struct board_claim *claim = &peer->is.claim;

		if (claim->is_client && is_higher(&claims, peer, rules))
			claims.higher = tpcset_or(&claims.higher, &claim->tpcs);
		else if (claim->is_client && claim->lend_us == 0)
			claims.kept = tpcset_or(&claims.kept, &claim->tpcs);
		claims.borrowers += claim->is_client && claim->is_borrower;
	}
	return claims;
}

static struct tpcset what_it_gives(const struct claims *claims, const struct peer *peer, const struct others_rules *rules)
{
	struct tpcset gives = {{0}}, lent = tpcset_without(&peer->is.claim.tpcs, &claims->own);

	if (is_higher(claims, peer, rules))
		gives = tpcset_and(&peer->is.claim.tpcs, &claims->own);
	if (rules->borrows && peer->is.claim.lend_us > 0) {
		lent = tpcset_and(&lent, &rules->borrow);
		lent = tpcset_without(&lent, &claims->kept);
		gives = tpcset_or(&gives, &lent);
	}
	return gives;
}

/* How it was seen before goes on. */
static void copy_owner(struct other *other, const struct others_on_gpu *before)
{
	for (unsigned int i = 0; i < before->count; i++) {
		if (before->list[i].pid == other->pid && before->list[i].start == other->start) {
			atomic_store(&other->owner.launches, atomic_load(&before->list[i].owner.launches));
			atomic_store(&other->owner.since, atomic_load(&before->list[i].owner.since));
		}
	}
}

/* The number comes first: with what comes later, it is another one. */
static void find_places(struct other *other, const struct peer *peer)
{
	other->is_unknown = !peer->view.segment;
	if (other->is_unknown)
		return;
	other->number = counts_view_number(&peer->view);
	other->number_then = atomic_load(other->number);
	other->place_count = counts_view_places(&peer->view, peer->is.claim.pci, other->places, OTHERS_PLACES);
	other->is_unknown = other->place_count > OTHERS_PLACES || counts_view_has_gap(&peer->view) || !peer->demand.is_known;
	other->place_count = other->is_unknown ? 0 : other->place_count;
	for (unsigned int i = 0; i < other->place_count; i++)
		other->is_unknown |= !counts_place_is_exact(other->places[i]);
}

/* Who only lends is never idle where that is not known. One of a higher priority is where nothing has moved for a while. */
static void add(struct others_on_gpu *made, const struct peer *peer, const struct tpcset *gives, uint64_t limit_ns, bool is_before)
{
	struct other *other = &made->list[made->count++];

	*other = (struct other){
		.gives = *gives,
		.takes = peer->is.claim.tpcs,
		.hold_ns = is_before && !made->has_part ? 0 : limit_ns,
		.is_open = is_before && !peer->demand.wants,
		.pid = peer->is.pid,
		.start = peer->is.start,
	};
	find_places(other, peer);
}

static bool is_same(const struct others_on_gpu *a, const struct others_on_gpu *b)
{
	bool same = a->count == b->count && tpcset_equal(&a->part, &b->part);

	for (unsigned int i = 0; i < a->count && same; i++)
		same = tpcset_equal(&a->list[i].gives, &b->list[i].gives) && tpcset_equal(&a->list[i].takes, &b->list[i].takes);
	return same;
}

static void see_each(struct others_on_gpu *made, struct pci_address pci, const struct others_rules *rules,
                     const struct claims *claims)
{
	const struct peer *peer;

	for (unsigned int i = 0; (peer = peers_on(pci, i)) && made->count < OTHERS_MAX; i++) {
		struct tpcset gives = what_it_gives(claims, peer, rules);
		uint32_t lend_us = peer->is.claim.lend_us;
		uint64_t limit = (uint64_t)(lend_us > 0 ? lend_us : SEGMENT_LEND_USUAL_US) * 1000;

		if (!peer->is.claim.is_client || tpcset_is_empty(&gives))
			continue;
		add(made, peer, &gives, limit, is_higher(claims, peer, rules));
		made->limit_ns = min_u64(made->limit_ns, lend_us > 0 ? limit / claims->borrowers : limit);
	}
}

void others_see(struct others_on_gpu *made, const struct others_on_gpu *before, struct pci_address pci,
                const struct others_rules *rules)
{
	struct claims claims = see_claims(pci, rules);

	claims.borrowers = max_u64(claims.borrowers, 1);
	*made = (struct others_on_gpu){.all_own = claims.own, .part = tpcset_without(&claims.own, &claims.higher), .limit_ns = UINT64_MAX};
	made->has_part = !tpcset_is_empty(&made->part);
	made->is_narrow = made->has_part && !tpcset_equal(&made->part, &claims.own);
	see_each(made, pci, rules, &claims);
	made->batch_ns = min_u64(made->limit_ns, LENDING_BATCH_NS / claims.borrowers);
	for (unsigned int i = 0; i < made->count; i++)
		copy_owner(&made->list[i], before);
	made->own_count = releases_places(pci, made->own, OTHERS_PLACES);
	made->own_is_unknown = !rules->is_known || made->own_count == 0 || made->own_count > OTHERS_PLACES;
	made->own_count = made->own_count > OTHERS_PLACES ? 0 : made->own_count;
	for (unsigned int i = 0; i < made->own_count; i++)
		made->own_is_unknown |= !counts_place_is_exact(made->own[i]);
	made->generation = before->generation + !is_same(made, before);
}

/* --- reading it ------------------------------------------------------------------------------------------------------- */

/* Everything that is read was launched before `launches`, or is seen in flight: or the number is another one at the next look. */
static __attribute__((noinline)) bool opens(struct other *other, uint64_t launches)
{
	uint64_t in_flight = 0;

	if (other->is_unknown)
		return other->is_open;
	for (unsigned int i = 0; i < other->place_count; i++)
		in_flight += counts_place_in_flight(other->places[i]);
	bool wants = in_flight > 0 || atomic_load(other->number) != other->number_then;

	return lending_opens(&other->owner, launches, wants, wants ? 0 : process_clock_ns(), other->hold_ns);
}

uint32_t others_open(struct others_on_gpu *others)
{
	uint32_t open = 0;

	for (unsigned int i = 0; i < others->count; i++) {
		struct other *other = &others->list[i];
		uint64_t launches = 0;

		for (unsigned int place = 0; place < other->place_count; place++)
			launches += counts_place_launches(other->places[place]);
		bool stays = !other->is_unknown && lending_stays_open(&other->owner, launches) &&
		             atomic_load_explicit(other->number, memory_order_relaxed) == other->number_then;

		if (stays || opens(other, launches))
			open |= UINT32_C(1) << i;
	}
	return open;
}

bool others_open_own(const struct others_on_gpu *others, uint32_t open)
{
	bool has_own = false;

	for (unsigned int i = 0; i < others->count; i++)
		has_own = has_own || (open >> i & 1 && tpcset_overlap(&others->list[i].gives, &others->all_own));
	return has_own;
}

uint64_t others_own_in_flight(const struct others_on_gpu *others)
{
	uint64_t in_flight = 0;

	for (unsigned int i = 0; i < others->own_count; i++)
		in_flight += counts_place_in_flight(others->own[i]);
	return in_flight;
}

struct tpcset others_tpcs(const struct others_on_gpu *others, uint32_t open)
{
	struct tpcset more = {{0}};

	for (unsigned int i = 0; i < others->count; i++) {
		if (open >> i & 1)
			more = tpcset_or(&more, &others->list[i].gives);
	}
	for (unsigned int i = 0; i < others->count; i++) {
		if (!(open >> i & 1))
			more = tpcset_without(&more, &others->list[i].takes);
	}
	return tpcset_or(&more, &others->part);
}
