#include "others.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/releases.h"
#include "state/kernels/counts_read.h"
#include "state/revisions.h"

#include <stddef.h>
#include <string.h>

/* --- making it -------------------------------------------------------------------------------------------------------- */

/* What the claims on a GPU say. */
struct claims {
	struct tpcset own;
	struct tpcset higher; /* TPCs of those of a higher priority, */
	struct tpcset kept;   /* and of others who do not lend */
};

static bool is_higher(const struct claims *claims, const struct peer *peer, const struct others_rules *rules)
{
	return peer->is.claim.priority > rules->priority && tpcset_overlap(&peer->is.claim.tpcs, &claims->own);
}

#define RESTS_NS UINT64_C(100000000)

/* One that rests has no part in LIMIT; when it launches again, others see that at their next look. */
static bool may_borrow(const struct peer *peer)
{
	bool rests = peer->view.segment && peer->demand.is_known && demand_idle_ns(&peer->demand) >= RESTS_NS;

	return peer->is.claim.is_client && peer->is.claim.is_borrower && !rests;
}

static struct claims see_claims(struct pci_address pci, const struct others_rules *rules)
{
	struct claims claims = {.own = peers_own(pci)};
	const struct peer *peer;

	for (unsigned int i = 0; (peer = peers_next(pci, &i));) {
		const struct board_claim *claim = &peer->is.claim;

		if (claim->is_client && is_higher(&claims, peer, rules))
			claims.higher = tpcset_or(&claims.higher, &claim->tpcs);
		else if (claim->is_client && claim->lend_us == 0)
			claims.kept = tpcset_or(&claims.kept, &claim->tpcs);
	}
	return claims;
}

static struct tpcset what_it_gives(const struct claims *claims, const struct peer *peer, const struct others_rules *rules)
{
	struct tpcset gives = {{0}}, lent = tpcset_without(&peer->is.claim.tpcs, &claims->own);

	if (is_higher(claims, peer, rules))
		gives = tpcset_and(&peer->is.claim.tpcs, &claims->own);
	if (rules->borrows && peer->is.claim.lend_us > 0 && peer->demand.is_known) {
		lent = tpcset_and(&lent, &rules->borrow);
		lent = tpcset_without(&lent, &claims->kept);
		gives = tpcset_or(&gives, &lent);
	}
	return gives;
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

/* With this process. Nobody borrows what it has itself. */
static uint64_t borrowers_from(const struct peer *lender, struct pci_address pci)
{
	uint64_t count = 1;
	const struct peer *peer;

	for (unsigned int i = 0; (peer = peers_next(pci, &i));)
		count += may_borrow(peer) && !tpcset_is_subset(&lender->is.claim.tpcs, &peer->is.claim.tpcs);
	return count;
}

/* Who only lends is never idle where that is not known. One of a higher priority is where nothing has moved for a while. What those
 * that borrow from it have in flight there takes no longer than LIMIT all together. */
static void add(struct others_on_gpu *made, const struct peer *peer, const struct tpcset *gives, bool is_before)
{
	struct other *other = &made->list[made->count++];
	const struct board_claim *claim = &peer->is.claim;
	bool lends = claim->lend_us > 0;
	uint64_t hold_ns = (lends ? claim->lend_us : SEGMENT_LEND_USUAL_US) * UINT64_C(1000);
	uint64_t limit_ns = lends ? hold_ns / borrowers_from(peer, claim->pci) : hold_ns;

	other->pid = peer->is.pid;
	other->gives = *gives;
	other->takes = claim->tpcs;
	other->hold_ns = is_before && !made->has_part ? LENDING_ROW_NS : hold_ns;
	find_places(other, peer);
	other->is_open = is_before && !peer->demand.wants && other->is_unknown;
	made->may_open = made->may_open || !other->is_unknown;
	made->limit_ns = min_u64(made->limit_ns, limit_ns);
	made->batch_ns = min_u64(made->batch_ns, lends ? limit_ns / LENDING_BATCH_PART : LENDING_BATCH_NS);
}

/* Those for whom there is no room keep what they have. */
static void see_each(struct others_on_gpu *made, struct pci_address pci, const struct others_rules *rules,
                     const struct claims *claims)
{
	struct tpcset left_out = {{0}};
	const struct peer *peer;

	for (unsigned int i = 0; (peer = peers_next(pci, &i));) {
		struct tpcset gives = what_it_gives(claims, peer, rules);

		if (!peer->is.claim.is_client || tpcset_is_empty(&gives))
			continue;
		if (made->count < OTHERS_MAX)
			add(made, peer, &gives, is_higher(claims, peer, rules));
		else
			left_out = tpcset_or(&left_out, &peer->is.claim.tpcs);
	}
	for (unsigned int i = 0; i < made->count; i++)
		made->list[i].gives = tpcset_without(&made->list[i].gives, &left_out);
}

static void see_own(struct others_on_gpu *made, struct pci_address pci, const struct others_rules *rules)
{
	unsigned int count = releases_places(pci, made->own, OTHERS_PLACES);

	made->own_count = count <= OTHERS_PLACES ? count : OTHERS_PLACES;
	made->own_is_unknown = !rules->is_known || count == 0 || count > OTHERS_PLACES;
	for (unsigned int i = 0; i < made->own_count; i++)
		made->own_is_unknown |= !counts_place_is_exact(made->own[i]);
}

bool others_see(struct others_on_gpu *made, const struct others_on_gpu *before, struct pci_address pci,
                const struct others_rules *rules)
{
	struct claims claims = see_claims(pci, rules);

	memset(made, 0, sizeof *made);
	made->all_own = claims.own;
	made->part = tpcset_without(&claims.own, &claims.higher);
	made->has_part = !tpcset_is_empty(&made->part);
	made->is_narrow = made->has_part && !tpcset_equal(&made->part, &claims.own);
	made->limit_ns = made->batch_ns = UINT64_MAX;
	see_each(made, pci, rules, &claims);
	see_own(made, pci, rules);
	made->generation = before->generation;
	bool is_new = memcmp(made, before, offsetof(struct others_on_gpu, owners)) != 0;

	made->generation += is_new;
	return is_new;
}

/* --- reading it ------------------------------------------------------------------------------------------------------- */

static uint64_t sum(const struct counts_place *const places[], unsigned int count, uint64_t of(const struct counts_place *))
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < count; i++)
		all += of(places[i]);
	return all;
}

static uint64_t launches_of(const struct other *other)
{
	return sum(other->places, other->place_count, counts_place_launches);
}

static bool stays_open(const struct others_on_gpu *others, unsigned int i, uint64_t launches)
{
	const struct other *other = &others->list[i];

	return !other->is_unknown && lending_stays_open(&others->owners[i], launches) &&
	       atomic_load_explicit(other->number, memory_order_relaxed) == other->number_then;
}

/* Everything that is read was launched before `launches`, or is seen in flight: or the number is another one at the next look. */
static uint64_t look(struct others_on_gpu *others, unsigned int i, uint64_t launches)
{
	const struct other *other = &others->list[i];
	uint64_t opens_in = other->is_open ? 0 : LENDING_NEVER;

	if (!other->is_unknown) {
		bool wants = sum(other->places, other->place_count, counts_place_in_flight) > 0 ||
		             atomic_load(other->number) != other->number_then;

		opens_in = lending_opens_in(&others->owners[i], launches, wants, wants ? 0 : process_clock_ns(), other->hold_ns);
	}
	return opens_in;
}

struct others_now others_look(struct others_on_gpu *others, uint64_t length_ns)
{
	struct others_now now = {.opens_in_ns = LENDING_NEVER, .idle_ns = LENDING_NEVER};

	for (unsigned int i = 0; i < others->count; i++) {
		uint64_t launches = launches_of(&others->list[i]);
		uint64_t settles_in = stays_open(others, i, launches) ? 0 : look(others, i, launches), hold = others->list[i].hold_ns;
		uint64_t opens_in = lending_opens_early(settles_in, hold, length_ns);

		if (opens_in == 0 && settles_in != 0)
			now.idle_ns = min_u64(now.idle_ns, hold - settles_in);
		now.open |= (uint32_t)(opens_in == 0) << i;
		now.opens_in_ns = opens_in == 0 ? now.opens_in_ns : min_u64(now.opens_in_ns, opens_in);
	}
	return now;
}

uint64_t others_own_in_flight(const struct others_on_gpu *others)
{
	return sum(others->own, others->own_count, counts_place_in_flight);
}

uint64_t others_own_ended(const struct others_on_gpu *others)
{
	return sum(others->own, others->own_count, counts_place_ended);
}

struct tpcset others_tpcs(const struct others_on_gpu *others, uint32_t open)
{
	struct tpcset more = {{0}}, taken = {{0}};

	for (unsigned int i = 0; i < others->count; i++) {
		const struct other *other = &others->list[i];

		if (open >> i & 1)
			more = tpcset_or(&more, &other->gives);
		else
			taken = tpcset_or(&taken, &other->takes);
	}
	more = tpcset_without(&more, &taken);
	return tpcset_or(&more, &others->part);
}

bool others_words(const struct others_on_gpu *others, const _Atomic uint64_t *but, struct counts_words *words)
{
	bool is_so = counts_words_add_places(words, others->own, others->own_count, but);

	for (unsigned int i = 0; i < others->count && is_so; i++)
		is_so = counts_words_add_places(words, others->list[i].places, others->list[i].place_count, NULL) &&
		        counts_words_add(words, others->list[i].number);
	words->sum = is_so ? counts_words_sum(words) : 0;
	for (unsigned int i = 0; i < others->count && is_so; i++)
		is_so = stays_open(others, i, launches_of(&others->list[i]));
	return is_so;
}
