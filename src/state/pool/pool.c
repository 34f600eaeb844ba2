/* A program in a pool. */
#include "pool.h"

#include "pages.h"
#include "state/group/group.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>

#define GPUS TOPOLOGY_GPUS_MAX
#define NOWHERE (-1)

/* How often a program writes without news. */
#define BEAT_NS (POOL_SILENCE_NS / 10)

static struct {
	char directory[PATH_MAX];
	const struct pool_memory *memory; /* NULL: no pool */
	bool is_kept_out; /* the container has a pool, and a file cannot be opened */
	struct pool_page *own;
	uint64_t own_inode;
	unsigned int gpu_count;
	/* The process's slot for each GPU. */
	struct own {
		struct pool_slot slot;
		int place; /* or NOWHERE */
		uint64_t work;
		uint64_t written; /* when */
	} gpus[GPUS];
	/* The page of each group as seen at the last look. */
	struct seen {
		const struct pool_page *page;
		uint64_t inode;
		uint64_t tried; /* when the page was opened */
		struct {
			uint64_t owner, beat;
			uint64_t changed; /* when; 0: never seen */
		} slots[POOL_SLOTS];
	} pages[POOL_GROUPS];
} pool;

static struct pool_view views[POOL_GROUPS][GPUS];
static _Atomic uint64_t looked;

/* --- pages of the groups ------------------------------------------------------------------------------------------ */

/* Without a page, nothing is written: each fork comes here. */
static void forget_page(struct seen *seen)
{
	const struct pool_page *page = seen->page;

	if (page || seen->tried != 0 || seen->inode != 0)
		*seen = (struct seen){.page = NULL};
	pool_unmap(page, POOL_PAGE);
}

/* The place may belong to a new group by now, with a new page. Tries again if a page cannot be opened, as under a
 * lease. */
static void follow_page(unsigned int number, uint64_t now)
{
	struct seen *seen = &pool.pages[number];
	uint64_t inode = atomic_load_explicit(&pool.memory->groups[number].page, memory_order_acquire), found;
	char path[PATH_MAX];

	if (seen->inode != inode)
		forget_page(seen);
	bool is_due = seen->tried == 0 || now - seen->tried >= POOL_SILENCE_NS;

	if (inode != 0 && !seen->page && is_due &&
	    snprintf(path, sizeof path, "%s/%u", pool.directory, number) < (int)sizeof path) {
		seen->page = pool_map(path, POOL_PAGE, false, &found);
		if (seen->page && found != inode)
			forget_page(seen);
		seen->inode = inode;
		seen->tried = now;
	}
}

/* --- coming and going --------------------------------------------------------------------------------------------- */

static void forget(void)
{
	const struct pool_memory *memory = pool.memory;
	const struct pool_page *own = pool.own;

	for (unsigned int i = 0; i < POOL_GROUPS; i++)
		forget_page(&pool.pages[i]);
	pool.memory = NULL;
	pool.own = NULL;
	pool_unmap(memory, sizeof *memory);
	pool_unmap(own, POOL_PAGE);
	pool.gpu_count = 0;
	pool.is_kept_out = false;
	atomic_store(&looked, 0);
}

bool pool_enter(const char *directory, const char *page)
{
	int saved = errno;

	if (!pool.memory && strlen(directory) < sizeof pool.directory) {
		strcpy(pool.directory, directory);
		pool.memory = pool_map_list(directory);
		pool.own = pool.memory ? pool_map(page, POOL_PAGE, true, &pool.own_inode) : NULL;
		if (!pool.own)
			forget();
	}
	errno = saved;
	return pool.memory != NULL;
}

/* Root's mount: no program in the container can write there. */
static bool is_read_only(const char *path)
{
	struct statvfs status;

	return statvfs(path, &status) == 0 && status.f_flag & ST_RDONLY;
}

bool pool_enter_mounted(const char *group)
{
	char directory[sizeof POOL_MOUNTS + GROUP_NAME_MAX], page[sizeof POOL_PAGES + GROUP_NAME_MAX];
	int saved = errno;

	if (!pool.memory && group_name_is_valid(group)) {
		snprintf(directory, sizeof directory, POOL_MOUNTS "/%s", group);
		snprintf(page, sizeof page, POOL_PAGES "/%s", group);
		pool.is_kept_out = is_read_only(directory) && !pool_enter(directory, page);
	}
	errno = saved;
	return pool.memory != NULL;
}

bool pool_is_there(void)
{
	return pool.memory != NULL;
}

bool pool_is_kept_out(void)
{
	return pool.is_kept_out;
}

void pool_leave(void)
{
	const struct pool_slot nothing = {.owner = 0};
	int saved = errno;

	for (unsigned int i = 0; pool.own && i < pool.gpu_count; i++) {
		if (pool.gpus[i].place != NOWHERE)
			pool_write_slot(pool.own, pool.gpus[i].place, &nothing);
	}
	forget();
	errno = saved;
}

void pool_after_fork(void)
{
	int saved = errno;

	forget();
	errno = saved;
}

/* --- telling ------------------------------------------------------------------------------------------------------ */

/* gpu_count if the process has told nothing of the GPU. */
static unsigned int gpu_of(struct pci_address pci)
{
	unsigned int at = 0;

	while (at < pool.gpu_count && !pci_address_equal(pool.gpus[at].slot.pci, pci))
		at++;
	return at;
}

/* NULL if there are more GPUs than a machine has. */
static struct own *own_on(struct pci_address pci)
{
	unsigned int at = gpu_of(pci);

	if (at == pool.gpu_count && at < GPUS) {
		pool.gpus[at] = (struct own){.slot = {.pci = pci}, .place = NOWHERE};
		pool.gpu_count++;
	}
	return at < GPUS ? &pool.gpus[at] : NULL;
}

static uint64_t random_number(uint64_t now)
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
		number = now * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t)&number;
	return number | 1;
}

static bool is_free(const struct pool_page *page, int place, uint64_t now)
{
	const struct seen *seen = NULL;
	bool is_old = false;

	for (unsigned int i = 0; i < POOL_GROUPS && !seen; i++)
		seen = pool.pages[i].inode == pool.own_inode ? &pool.pages[i] : NULL;
	if (seen)
		is_old = seen->slots[place].beat == page->slots[place].beat && seen->slots[place].changed != 0 &&
		         seen->slots[place].owner == page->slots[place].owner &&
		         now - seen->slots[place].changed >= POOL_LAPSE_NS;
	return page->slots[place].owner == 0 || page->slots[place].check != pool_check(&page->slots[place]) || is_old;
}

/* Begins anywhere: two programs rarely take the same slot at once, and a program notices a lost slot. */
static void take_slot(struct own *own, const struct pool_page *page, uint64_t now)
{
	own->slot.owner = random_number(now);
	for (unsigned int i = 0; i < POOL_SLOTS && own->place == NOWHERE; i++) {
		int place = (int)(((own->slot.owner >> 8) + i) % POOL_SLOTS);

		if (is_free(page, place, now))
			own->place = place;
	}
}

/* A slot is written anew for news, or as a sign of life. */
static bool is_due(const struct own *own, const struct pool_word *word, uint64_t now)
{
	return own->place == NOWHERE || own->work != word->work || own->slot.state != word->state ||
	       now - own->written >= BEAT_NS;
}

static void write_own(struct own *own, const struct pool_word *word, uint64_t now)
{
	own->slot.beat++;
	own->slot.moves += own->work != word->work;
	own->work = word->work;
	own->written = now;
	own->slot.state = word->state;
	own->slot.check = pool_check(&own->slot);
	if (own->place != NOWHERE && !pool_write_slot(pool.own, own->place, &own->slot))
		own->place = NOWHERE;
}

void pool_tell(struct pci_address pci, const struct pool_word *word, uint64_t now)
{
	static struct pool_page page; /* large */
	struct own *own = pool.own ? own_on(pci) : NULL;
	int saved = errno;

	if (own && is_due(own, word, now)) {
		bool is_copied = false;

		if (own->place == NOWHERE)
			pool_copy_pages(&page, (const struct pool_page *const[]){pool.own}, &is_copied, 1);
		if (is_copied)
			take_slot(own, &page, now);
		write_own(own, word, now);
	}
	errno = saved;
}

bool pool_has_room(void)
{
	bool has_room = !pool.is_kept_out;

	for (unsigned int i = 0; i < pool.gpu_count; i++)
		has_room = has_room && pool.gpus[i].place != NOWHERE;
	return has_room;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct sum {
	uint64_t moves;
	unsigned int borrowers;
	bool wants, is_unknown;
};

static bool is_own(const struct pool_slot *slot)
{
	bool is_so = false;

	for (unsigned int i = 0; i < pool.gpu_count; i++)
		is_so = is_so || (pool.gpus[i].place != NOWHERE && pool.gpus[i].slot.owner == slot->owner);
	return is_so;
}

/* Whether the program has written of late. A slot that is seen for the first time counts as written now. */
static bool is_alive(struct seen *seen, unsigned int place, const struct pool_slot *slot, uint64_t now)
{
	if (seen->slots[place].changed == 0 || seen->slots[place].beat != slot->beat ||
	    seen->slots[place].owner != slot->owner) {
		seen->slots[place].owner = slot->owner;
		seen->slots[place].beat = slot->beat;
		seen->slots[place].changed = now;
	}
	return now - seen->slots[place].changed < POOL_SILENCE_NS;
}

static void add(struct sum *sum, const struct pool_slot *slot, bool is_alive)
{
	sum->moves += slot->moves + slot->owner;
	sum->wants |= is_alive && slot->state & POOL_WANTS;
	sum->is_unknown |= is_alive && slot->state & POOL_UNKNOWN;
	sum->borrowers += is_alive && slot->state & POOL_BORROWS;
}

static void add_page(struct sum sums[GPUS], struct seen *seen, const struct pool_page *page, uint64_t now)
{
	for (unsigned int place = 0; place < POOL_SLOTS; place++) {
		const struct pool_slot *slot = &page->slots[place];

		if (slot->owner == 0 || slot->check != pool_check(slot) || is_own(slot))
			continue;
		bool lives = is_alive(seen, place, slot, now);

		for (unsigned int gpu = 0; gpu < pool.gpu_count; gpu++) {
			if (pci_address_equal(slot->pci, pool.gpus[gpu].slot.pci))
				add(&sums[gpu], slot, lives);
		}
	}
}

static bool has_group(unsigned int number)
{
	return atomic_load_explicit(&pool.memory->groups[number].page, memory_order_acquire) != 0;
}

static bool is_own_group(unsigned int number)
{
	return atomic_load(&pool.memory->groups[number].page) == pool.own_inode;
}

/* `wants` comes first: a launch that sees the new number of moves sees the demand as well. */
static void publish(struct pool_view *view, const struct sum *sum)
{
	atomic_store(&view->wants, sum->wants);
	atomic_store(&view->is_unknown, sum->is_unknown);
	view->borrowers = sum->borrowers;
	atomic_store(&view->moves, sum->moves);
}

/* A slot of this process with a further owner is lost, as are all slots of an unreadable page (NULL). The next
 * pool_tell takes a new slot. */
static void find_lost(const struct pool_page *page)
{
	for (unsigned int i = 0; i < pool.gpu_count; i++) {
		struct own *own = &pool.gpus[i];

		if (own->place != NOWHERE && (!page || page->slots[own->place].owner != own->slot.owner))
			own->place = NOWHERE;
	}
}

/* `page`: NULL if unreadable. Then the work of the group is not known, and the group always wants. */
static void see_page(unsigned int number, const struct pool_page *page, uint64_t now)
{
	struct sum sums[GPUS] = {{.moves = 0}};

	if (has_group(number) && is_own_group(number))
		find_lost(page);
	if (page)
		add_page(sums, &pool.pages[number], page, now);
	for (unsigned int gpu = 0; gpu < pool.gpu_count; gpu++) {
		if (has_group(number) && !page)
			sums[gpu].wants = sums[gpu].is_unknown = true;
		publish(&views[number][gpu], &sums[gpu]);
	}
}

void pool_look(uint64_t now)
{
	static struct pool_page copies[POOL_GROUPS]; /* large */
	const struct pool_page *pages[POOL_GROUPS];
	bool are_copied[POOL_GROUPS];
	unsigned int count = 0, at = 0;
	int saved = errno;

	if (!pool.memory)
		return;
	for (unsigned int i = 0; i < POOL_GROUPS; i++) {
		follow_page(i, now);
		if (pool.pages[i].page)
			pages[count++] = pool.pages[i].page;
	}
	pool_copy_pages(copies, pages, are_copied, count);
	for (unsigned int i = 0; i < POOL_GROUPS; i++) {
		bool is_copied = pool.pages[i].page && are_copied[at];

		see_page(i, is_copied ? &copies[at] : NULL, now);
		at += pool.pages[i].page != NULL;
	}
	atomic_store(&looked, now);
	errno = saved;
}

bool pool_is_fresh(uint64_t now, uint64_t ns)
{
	uint64_t last = atomic_load(&looked);

	return last != 0 && (now <= last || now - last < ns);
}

bool pool_partner(unsigned int number, struct pci_address pci, struct pool_partner *partner)
{
	struct segment_revision revision;
	uint64_t revision_number;
	const struct pool_record *record = pool.memory ? &pool.memory->groups[number] : NULL;
	const struct segment_partition *partition = NULL;
	unsigned int gpu = gpu_of(pci);

	if (record && gpu < pool.gpu_count && has_group(number) && !is_own_group(number) &&
	    revisions_load(record->ring, &record->number, &revision, &revision_number))
		partition = revision_find_partition(&revision, pci);
	if (partition && !tpcset_is_empty(&partition->set))
		*partner = (struct pool_partner){
			.group = atomic_load(&record->group),
			.tpcs = partition->set,
			.priority = segment_rank_priority(revision.rank),
			.lend_us = segment_lends_us(&revision.lending),
			.is_client = atomic_load(&record->is_client) != 0,
			.is_borrower = segment_borrows(&revision.lending),
			.view = &views[number][gpu],
		};
	return partition && !tpcset_is_empty(&partition->set);
}

unsigned int pool_own_borrowers(struct pci_address pci)
{
	unsigned int count = 0, gpu = gpu_of(pci);

	for (unsigned int i = 0; pool.memory && gpu < pool.gpu_count && i < POOL_GROUPS; i++)
		count += is_own_group(i) ? views[i][gpu].borrowers : 0;
	return count;
}
