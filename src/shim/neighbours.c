#include "neighbours.h"

#include "driver/gpus.h"
#include "state/board.h"

#include <stddef.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* --- finding others ----------------------------------------------------------------------------------------------- */

/* When to look for other boards, after the first look at neighbours; the last again and again. Two that came up at
 * once become one soon. */
static const uint64_t searches[] = {20 * MS, 200 * MS, SECOND, 10 * SECOND};

#define SEARCHES (sizeof searches / sizeof searches[0])

static struct {
	bool takes_part;
	bool is_searching;
	uint64_t since; /* the first look, or the last search; 0: none yet */
	size_t next;    /* of `searches` */
} finding;

static void plan_search(uint64_t now)
{
	if (finding.since == 0)
		finding.since = now;
	finding.is_searching = now - finding.since >= searches[finding.next];
	if (finding.is_searching && finding.next + 1 < SEARCHES)
		finding.next++;
	else if (finding.is_searching)
		finding.since = now;
}

/* A part of a search at each look. */
static void search(uint64_t now)
{
	if (!finding.is_searching)
		plan_search(now);
	if (finding.is_searching)
		finding.is_searching = board_look();
}

/* --- what this process wants -------------------------------------------------------------------------------------- */

/* While nobody else is there, this process says that it is, no more often. */
#define IDLE_NS SECOND

/* Its GPUs, what it says on each, and what it has seen there. */
static struct own {
	struct pci_address pci;
	struct tpcset tpcs;
	bool wants;
	uint64_t wants_since;
	bool has_said;
	uint64_t said;
	struct neighbours_on_gpu seen;
} owns[COUNTS_GPUS];
static unsigned int own_count;

static const struct tpcset everything = {{[0 ... TPCSET_WORDS - 1] = UINT64_MAX}};

static struct segment_revision partition;
static bool has_partition;

void neighbours_have(const struct segment_revision *revision)
{
	partition = *revision;
	has_partition = true;
}

/* All that there can be, where the GPU is not known, or launches there are not restricted. */
static struct tpcset tpcs_on(struct pci_address pci)
{
	const struct gpu *gpu = gpus_at(pci);
	const struct segment_partition *set = has_partition ? segment_find(&partition, pci) : NULL;
	bool has_masks = gpu && gpus_have_masks(gpu);
	struct tpcset tpcs = has_masks ? topology_all(gpu->topology) : everything;

	return has_masks && set && tpcset_overlap(&set->set, &tpcs) ? tpcset_and(&set->set, &tpcs) : tpcs;
}

/* A look that sees no work is a pause: short ones are for the rules to tell from long ones. */
static void notice(struct own *own, bool wants, uint64_t now)
{
	if (!wants)
		own->wants_since = 0;
	else if (!own->wants)
		own->wants_since = now;
	own->wants = wants;
}

static void say(struct own *own, uint64_t now, const struct neighbours_self *self)
{
	const struct board_claim claim = {
		.pci = own->pci,
		.tpcs = own->tpcs,
		.priority = self->priority,
		.weight = self->weight,
		.wants = own->wants,
		.is_aside = self->is_aside,
		.is_client = self->is_client,
		.wants_since = own->wants_since,
		.served_ns = self->served_ns,
		.said = now,
	};

	own->has_said = board_claim(&claim);
	own->said = now;
}

static struct own *own_on(struct pci_address pci)
{
	struct own *found = NULL;

	for (unsigned int i = 0; i < own_count && !found; i++)
		found = pci_address_equal(owns[i].pci, pci) ? &owns[i] : NULL;
	if (!found && own_count < COUNTS_GPUS) {
		found = &owns[own_count++];
		*found = (struct own){.pci = pci};
	}
	return found;
}

static bool is_on(const struct sight *sight, struct pci_address pci)
{
	bool found = false;

	for (unsigned int i = 0; i < sight->gpu_count && !found; i++)
		found = pci_address_equal(sight->gpus[i].pci, pci);
	return found;
}

static void retract_former(const struct sight *sight)
{
	for (unsigned int i = own_count; i > 0; i--) {
		if (!is_on(sight, owns[i - 1].pci)) {
			board_retract(owns[i - 1].pci);
			owns[i - 1] = owns[--own_count];
		}
	}
}

/* --- what the others want ----------------------------------------------------------------------------------------- */

static bool is_present(const struct board_claim *claim)
{
	return claim->wants && !claim->is_aside;
}

static bool speaks(const struct board_claim *claim, uint64_t now)
{
	return now <= claim->said || now - claim->said <= BOARD_FRESH_NS;
}

static void add_higher(struct neighbours *all, const struct board_claim *claim, uint64_t now)
{
	bool wants = is_present(claim);

	all->has_higher = true;
	all->higher_speaks = all->higher_speaks || speaks(claim, now);
	if (wants && (!all->higher_wants || claim->wants_since < all->higher_since))
		all->higher_since = claim->wants_since;
	all->higher_wants = all->higher_wants || wants;
	all->higher_wanting += wants;
}

static void add_equal(struct neighbours *all, const struct board_claim *claim, uint64_t now)
{
	all->equals_speaking += speaks(claim, now);
	all->equals_wanting += claim->wants;
	all->equals_present += is_present(claim);
	if (is_present(claim) && claim->served_ns < all->least_served_ns)
		all->least_served_ns = claim->served_ns;
}

static void add(struct neighbours *all, const struct board_claim *claim, uint64_t now, const struct neighbours_self *self)
{
	all->any = true;
	all->has_rivals = all->has_rivals || (claim->priority <= self->priority && is_present(claim));
	if (claim->priority > self->priority)
		add_higher(all, claim, now);
	else if (claim->priority == self->priority)
		add_equal(all, claim, now);
}

static void add_if_sharing(struct neighbours_on_gpu *seen, const struct board_claim *claim, uint64_t now,
                           const struct neighbours_self *self)
{
	struct tpcset theirs = claim->is_client ? claim->tpcs : everything;

	if (tpcset_overlap(&theirs, &seen->own)) {
		add(&seen->neighbours, claim, now, self);
		if (claim->priority > self->priority && is_present(claim))
			seen->higher = tpcset_or(&seen->higher, &theirs);
	}
}

static struct neighbours neighbours_on(struct own *own, uint64_t now, const struct neighbours_self *self)
{
	static struct board_claim claims[BOARD_PLACES]; /* large */
	struct neighbours all = neighbours_none;
	unsigned int count = board_read(own->pci, now, claims);

	own->seen = (struct neighbours_on_gpu){.pci = own->pci, .own = own->tpcs, .neighbours = neighbours_none};
	for (unsigned int i = 0; i < count; i++) {
		add(&all, &claims[i], now, self);
		add_if_sharing(&own->seen, &claims[i], now, self);
	}
	return all;
}

bool neighbours_seen(unsigned int number, struct neighbours_on_gpu *seen)
{
	bool is_there = number < own_count;

	if (is_there)
		*seen = owns[number].seen;
	return is_there;
}

/* Whether there is more to give way to among `a` than among `b`. */
static bool is_more(const struct neighbours *a, const struct neighbours *b)
{
	bool is_so = a->any && !b->any;

	if (a->higher_wants != b->higher_wants)
		is_so = a->higher_wants;
	else if (a->higher_wants && a->higher_since != b->higher_since)
		is_so = a->higher_since < b->higher_since;
	else if (a->has_higher != b->has_higher)
		is_so = a->has_higher;
	else if (a->least_served_ns != b->least_served_ns)
		is_so = a->least_served_ns < b->least_served_ns;
	else if (a->equals_wanting != b->equals_wanting)
		is_so = a->equals_wanting > b->equals_wanting;
	return is_so;
}

/* --- both --------------------------------------------------------------------------------------------------------- */

static struct neighbours look_on(struct own *own, uint64_t now, const struct neighbours_self *self)
{
	own->tpcs = tpcs_on(own->pci);
	struct neighbours found = neighbours_on(own, now, self);

	if (found.any || !own->has_said || now - own->said >= IDLE_NS)
		say(own, now, self);
	return found;
}

/* A GPU that is not known is not the same as another process's. */
static struct neighbours look_on_all(uint64_t now, const struct sight *sight, const struct neighbours_self *self)
{
	struct neighbours most = neighbours_none;
	bool is_busy = false; /* on the GPU of `most` */

	for (unsigned int i = 0; i < sight->gpu_count; i++) {
		struct own *own = pci_address_is_known(sight->gpus[i].pci) ? own_on(sight->gpus[i].pci) : NULL;

		if (own) {
			notice(own, sight->gpus[i].wants, now);
			struct neighbours found = look_on(own, now, self);

			if (own->wants != is_busy ? own->wants : is_more(&found, &most))
				most = found;
			is_busy = is_busy || own->wants;
		}
	}
	return most;
}

struct neighbours neighbours_look(uint64_t now, const struct sight *sight, const struct neighbours_self *self)
{
	if (!finding.takes_part)
		return neighbours_none;
	search(now);
	retract_former(sight);
	return look_on_all(now, sight, self);
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

static void begin(bool takes_part)
{
	finding.takes_part = takes_part;
	finding.is_searching = false;
	finding.since = 0;
	finding.next = 0;
	own_count = 0;
}

/* Without a board, nobody is there; now and then one is looked for. */
void neighbours_join(void)
{
	if (!finding.takes_part) {
		begin(true);
		board_join(NULL);
	}
}

void neighbours_leave(void)
{
	begin(false);
	has_partition = false;
	board_leave();
}

void neighbours_after_fork(void)
{
	begin(false);
	has_partition = false;
	board_after_fork();
}
