#include "peers.h"

#include "base/extremes.h"
#include "company.h"
#include "driver/gpus.h"
#include "launch/space/partition.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* How often to look whether a peer is alive: with work, or dead at the last look; and otherwise. */
#define ALIVE_NS (5 * MS)
#define ALIVE_IDLE_NS SECOND

/* --- peers ------------------------------------------------------------------------------------------------------- */

/* By place on the board, or by GPU and group of the pool; and as a list. */
static struct peer places[BOARD_PLACES];
static struct peer partners[COUNTS_GPUS][POOL_GROUPS];
static struct peer *peers[BOARD_PLACES + COUNTS_GPUS * POOL_GROUPS];
static unsigned int peer_count;

static bool is_same(const struct board_peer *a, const struct board_peer *b)
{
	return a->pid == b->pid && a->start == b->start && pci_address_equal(a->claim.pci, b->claim.pci) &&
	       a->claim.segment == b->claim.segment && a->claim.inode == b->claim.inode;
}

/* A new peer has nothing of the peer before. */
static void list(struct peer *peer, bool is_same_peer)
{
	if (!peer->is_listed)
		peers[peer_count++] = peer;
	if (!peer->is_listed || !is_same_peer) {
		counts_view_close(&peer->view);
		*peer = (struct peer){.is_listed = true};
	}
	peer->is_seen = true;
}

/* An unreadable segment has no demand. A new launch shows that a living peer still lives. */
static void read_demand(struct peer *peer, uint64_t now)
{
	uint64_t launched = peer->demand.launched;

	counts_view_follow(&peer->view);
	struct counts_of_gpu counts = counts_view_read(&peer->view, peer->is.claim.pci);

	demand_note(&peer->demand, now, &counts);
	if (peer->is_alive && counts.launched > launched)
		peer->asked = now;
}

/* A program executed in place of the peer has no part in the claim. */
static void ask_whether_alive(struct peer *peer, uint64_t now)
{
	uint64_t pause = peer->demand.wants || !peer->is_alive ? ALIVE_NS : ALIVE_IDLE_NS;

	if (now - peer->asked >= pause) {
		peer->is_alive = board_is_alive(peer->is.pid, peer->is.start) && counts_view_is_current(&peer->view);
		peer->asked = now;
		if (!peer->is_alive)
			board_bury(&peer->is);
	}
}

/* Without a segment, tries again as often as the peer is asked for: this process may have had no free descriptor. */
static const struct peer *see_peer(const struct board_peer *seen, uint64_t now)
{
	struct peer *peer = &places[seen->place];

	list(peer, is_same(&peer->is, seen));
	if (!peer->view.segment && seen->claim.inode != 0 && now - peer->asked >= ALIVE_NS)
		counts_view_open(&peer->view, seen->pid, seen->claim.segment, seen->claim.inode);
	peer->is = *seen;
	read_demand(peer, now);
	ask_whether_alive(peer, now);
	return peer;
}

/* Forgets the listed peers that the look did not see; between two looks, all peers. */
static void forget_others_than_seen(void)
{
	for (unsigned int i = peer_count; i > 0; i--) {
		struct peer *peer = peers[i - 1];

		if (peer->is_seen) {
			peer->is_seen = false;
		} else {
			counts_view_close(&peer->view);
			peer->is_listed = false;
			peers[i - 1] = peers[--peer_count];
		}
	}
}

const struct peer *peers_next(struct pci_address pci, unsigned int *at)
{
	const struct peer *found = NULL;

	for (; *at < peer_count && !found; ++*at) {
		if (peers[*at]->is_alive && pci_address_equal(peers[*at]->is.claim.pci, pci))
			found = peers[*at];
	}
	return found;
}

/* --- the pool ---------------------------------------------------------------------------------------------------- */

static char own_group[GROUP_NAME_MAX]; /* the name; "": no group */

static struct pool_word word_of(const struct work_on_gpu *there, const struct board_claim *self)
{
	bool wants = there->demand.wants && !self->is_suspended;
	bool borrows = self->is_borrower && demand_idle_ns(&there->demand) < POOL_SILENCE_NS;

	return (struct pool_word){
		.work = there->demand.launched + there->demand.ended,
		.state = (wants ? POOL_WANTS : 0u) | (there->demand.is_known ? 0u : POOL_UNKNOWN) |
		         (borrows ? POOL_BORROWS : 0u),
	};
}

/* The files of the pool may have been out of reach before. */
void peers_share(uint64_t now, const struct work *work, const struct board_claim *self, bool reads)
{
	static uint64_t tried;

	if (pool_is_kept_out() && now - tried >= SECOND) {
		pool_enter_mounted(own_group);
		tried = now;
	}
	for (unsigned int i = 0; pool_is_there() && i < work->gpu_count; i++) {
		const struct pool_word word = word_of(&work->gpus[i], self);

		if (pci_address_is_known(work->gpus[i].pci))
			pool_tell(work->gpus[i].pci, &word, now);
	}
	if (reads)
		pool_look(now);
}

/* A view has no number of launches. */
static void note_demand(struct peer *peer, uint64_t now)
{
	uint64_t moves = atomic_load(&peer->pooled->moves);
	const struct counts_of_gpu counts = {
		.launched = moves,
		.ended = moves,
		.in_flight = atomic_load(&peer->pooled->wants),
		.gaps = atomic_load(&peer->pooled->is_unknown) ? UINT32_C(1) << COUNTS_CLOSED : 0,
	};

	demand_note(&peer->demand, now, &counts);
}

static const struct peer *see_partner(struct peer *peer, struct pci_address pci, const struct pool_partner *partner,
                                      uint64_t now)
{
	list(peer, peer->is.claim.group == partner->group);
	peer->pooled = partner->view;
	peer->is.claim = (struct board_claim){
		.pci = pci,
		.tpcs = partner->tpcs,
		.priority = partner->priority,
		.weight = SEGMENT_WEIGHT_USUAL,
		.lend_us = partner->lend_us,
		.is_client = partner->is_client,
		.is_borrower = partner->is_borrower,
		.group = partner->group,
	};
	peer->is_alive = true;
	note_demand(peer, now);
	return peer;
}

/* --- what this process claims ------------------------------------------------------------------------------------ */

static const struct tpcset everything = {{[0 ... TPCSET_WORDS - 1] = UINT64_MAX}};

/* On an unknown GPU, or without masks, launches are not restricted. */
struct tpcset peers_own(struct pci_address pci)
{
	const struct gpu *gpu = gpus_at(pci);

	return gpu && gpu->has_masks ? partition_on(gpu) : everything;
}

static void claim(struct pci_address pci, uint64_t now, const struct board_claim *self)
{
	struct board_claim claimed = *self;

	claimed.pci = pci;
	claimed.tpcs = peers_own(pci);
	claimed.written = now;
	board_claim(&claimed);
}

/* --- rivals ------------------------------------------------------------------------------------------------------ */

static void add_higher(struct rivals *rivals, const struct peer *peer)
{
	rivals->has_higher = true;
	if (!peer->is.claim.is_suspended) {
		rivals->higher_wanting += peer->demand.wants;
		rivals->higher_idle_ns = min_u64(rivals->higher_idle_ns, demand_idle_ns(&peer->demand));
	}
}

static void add_equal(struct rivals *rivals, const struct peer *peer, const struct board_claim *self)
{
	const struct board_claim *claim = &peer->is.claim;
	bool is_present = demand_is_present(&peer->demand) && !claim->is_suspended;

	rivals->equals_present += is_present;
	rivals->equals_wanting += peer->demand.wants;
	rivals->equals_pause = rivals->equals_pause || (is_present && claim->pauses);
	if (claim->group == self->group)
		rivals->group_is_present = rivals->group_is_present || is_present;
	else if (is_present && claim->served_ns > 0)
		rivals->least_served_ns = min_u64(rivals->least_served_ns, claim->served_ns);
}

/* The groups that have been counted on a GPU: each at its number, or behind. */
#define GROUPS (2 * BOARD_PLACES)

static uint64_t groups[GROUPS];

/* Whether the group was not counted before. */
static bool count_group(uint64_t group)
{
	size_t at = group % GROUPS;

	while (groups[at] != 0 && groups[at] != group)
		at = (at + 1) % GROUPS;
	bool is_new = groups[at] == 0;

	groups[at] = group;
	return is_new;
}

/* The dead are no rivals. A pool has no weights. */
static void add_rival(struct rivals *rivals, const struct peer *peer, const struct board_claim *self)
{
	const struct board_claim *claim = &peer->is.claim;

	if (!peer->is_alive || (peer->pooled && claim->priority == self->priority))
		return;
	rivals->any = true;
	if (claim->priority > self->priority)
		add_higher(rivals, peer);
	else if (claim->priority == self->priority)
		add_equal(rivals, peer, self);
	else
		rivals->has_lower = true;
	if (claim->priority <= self->priority && claim->group != self->group && peer->demand.wants)
		rivals->lower_wanting += count_group(claim->group);
}

/* `here`: the peers in the pool on the GPU. */
static struct rivals see_gpu(struct pci_address pci, struct peer here[POOL_GROUPS], uint64_t now,
                             const struct board_claim *self)
{
	static struct board_peer seen[BOARD_PLACES]; /* large */
	unsigned int count = board_read(pci, seen);
	struct rivals rivals = rivals_none;
	struct pool_partner partner;

	memset(groups, 0, sizeof groups);
	for (unsigned int i = 0; i < count; i++)
		add_rival(&rivals, see_peer(&seen[i], now), self);
	for (unsigned int i = 0; pool_is_there() && i < POOL_GROUPS; i++) {
		if (pool_partner(i, pci, &partner))
			add_rival(&rivals, see_partner(&here[i], pci, &partner, now), self);
	}
	return rivals;
}

bool peers_have_a_number(void)
{
	bool is_so = false;

	for (unsigned int i = 0; i < peer_count && !is_so; i++)
		is_so = peers[i]->is_alive && company_is_number(peers[i]->is.claim.priority, peers[i]->is.claim.weight);
	return is_so;
}

/* Whether there is more to give way to among `a` than among `b`. */
static bool is_more(const struct rivals *a, const struct rivals *b)
{
	bool is_so = a->any && !b->any;

	if (a->higher_wanting != b->higher_wanting)
		is_so = a->higher_wanting > b->higher_wanting;
	else if (a->has_higher != b->has_higher)
		is_so = a->has_higher;
	else if (a->higher_idle_ns != b->higher_idle_ns)
		is_so = a->higher_idle_ns < b->higher_idle_ns;
	else if (a->least_served_ns != b->least_served_ns)
		is_so = a->least_served_ns < b->least_served_ns;
	else if (a->equals_wanting != b->equals_wanting)
		is_so = a->equals_wanting > b->equals_wanting;
	return is_so;
}

/* --- a look ------------------------------------------------------------------------------------------------------ */

/* A GPU on which the program has work comes first. Unknown GPUs of two processes are not the same GPU. */
struct rivals peers_look(uint64_t now, const struct work *work, const struct board_claim *self)
{
	struct rivals most = rivals_none;
	bool is_busy = false; /* on the GPU of `most` */

	board_look(now);
	peers_share(now, work, self, true);
	for (unsigned int i = 0; i < work->gpu_count; i++) {
		const struct work_on_gpu *there = &work->gpus[i];

		if (!pci_address_is_known(there->pci))
			continue;
		claim(there->pci, now, self);
		struct rivals found = see_gpu(there->pci, partners[i], now, self);

		if (there->demand.wants != is_busy ? there->demand.wants : is_more(&found, &most))
			most = found;
		is_busy = is_busy || there->demand.wants;
	}
	forget_others_than_seen();
	if (company_is_number(self->priority, self->weight))
		company_call(now, work);
	return most;
}

/* --- its life ---------------------------------------------------------------------------------------------------- */

/* Without a board there are no peers. peers_look looks for a board now and then. */
void peers_join(const struct group *group)
{
	char name[GROUP_NAME_MAX];

	strcpy(own_group, group_name(group, name));
	board_join(NULL);
	pool_enter_mounted(own_group);
}

static void forget(void)
{
	company_forget();
	forget_others_than_seen();
}

void peers_leave(void)
{
	forget();
	pool_leave();
	board_leave();
}

void peers_after_fork(void)
{
	forget();
	pool_after_fork();
	board_after_fork();
}
