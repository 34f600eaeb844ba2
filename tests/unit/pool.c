/*
 * A pool with hostile groups: a page means no more than work in flight, and no page, file or lease makes a reader wait
 * or fail. On a virtual clock.
 *
 * link: -Wl,--wrap=gpus_at
 */
#include "../cases.h"
#include "../alone.h"
#include "has.h"
#include "sets.h"

#include "base/clock.h"
#include "base/shared_file.h"
#include "driver/gpus.h"
#include "gpu/topology/topology.h"
#include "launch/space/partition.h"
#include "state/group/file.h"
#include "state/pool/file.h"
#include "state/segment/owner.h"
#include "time/demand/peers.h"
#include "time/gate/claims.h"

#include <sys/file.h>
#include <sys/mount.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define NOW (1000 * SECOND)

static const struct pci_address gpu = {.bus = 0x3b}, other_gpu = {.bus = 0x86};

/* 16 TPCs. */
static struct topology topology = {.tpc_count = 16};
static struct gpu first_gpu = {.topology = &topology, .pci = {.bus = 0x3b}, .has_masks = true};

WRAP(const struct gpu *, gpus_at, struct pci_address pci)
{
	return pci_address_equal(pci, gpu) ? &first_gpu : NULL;
}

/* --- root's side -------------------------------------------------------------------------------------------------- */

static char work[PATH_MAX];
static struct error error;
static bool may_mount;

/* The groups of the pool: the group of this process, and a partner. */
static struct pool_place own, partner;
static struct pool_page *page; /* of the partner, with any content */

static const char *group_path(const char *name)
{
	return text_of("%s/%s", work, name);
}

static struct segment_revision revision_of(struct tpcset tpcs)
{
	return (struct segment_revision){.count = 1, .partitions = {{gpu, tpcs}}};
}

static int put(const char *name, struct segment_revision revision, struct pool_place *place)
{
	struct group group;
	int result = group_file_make(&group, group_path(name), "", &error);

	group_close(&group);
	return result == 0 ? pool_file_put(group_path(name), "main", &revision, true, place, &error) : -1;
}

static struct pool_page *map_page(const char *path)
{
	int file = open(path, O_RDWR | O_CLOEXEC);
	void *memory = mmap(NULL, POOL_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	close(file);
	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static struct pool_memory *map_list(void)
{
	int file = open(text_of("%s/" POOL_LIST, own.directory), O_RDWR | O_CLOEXEC);
	struct pool_memory *list = mmap(NULL, sizeof *list, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	close(file);
	assert_ptr_not_equal(list, MAP_FAILED);
	return list;
}

FIXTURE(begin)
{
	strcpy(work, "/tmp/nvtaskset-test-XXXXXX");
	assert_non_null(mkdtemp(work));
	struct segment_revision lends = revision_of(range(8, 15)), borrows = revision_of(range(0, 7));

	lends.lending.lend_us = 4000;
	borrows.lending = (struct segment_lending){.borrows = SEGMENT_BORROW_SET, .borrow = segment_borrow_all};
	may_mount = put("own", borrows, &own) == 0;
	if (may_mount) {
		assert_done(put("partner", lends, &partner));
		page = map_page(partner.page);
	}
}

/* A fixture cannot skip a case. */
static void in_pool(void (*body)(void))
{
	if (!may_mount)
		skip_because("needs root, who may mount");
	body();
}

FIXTURE(leave)
{
	pool_leave();
	if (may_mount)
		munmap(page, POOL_PAGE);
	umount2(text_of("%s/" POOLS "/main", work), MNT_DETACH);
	assert_int_equal(system(text_of("rm -rf %s", work)), 0);
}

/* --- the partner -------------------------------------------------------------------------------------------------- */

static struct pool_slot slot = {.owner = 77};

/* As by a program. */
static void write_to(struct pool_page *to, unsigned int place, struct pool_slot said)
{
	said.check = pool_check(&said);
	to->slots[place] = said;
}

static void say(unsigned int state)
{
	slot.pci = gpu;
	slot.beat++;
	slot.moves++;
	slot.state = state;
	write_to(page, 3, slot);
}

/* --- this process ------------------------------------------------------------------------------------------------- */

static const struct pool_word idle = {.state = 0};

static void enter(void)
{
	assert_true(pool_enter(own.directory, own.page));
	pool_tell(gpu, &idle, NOW);
	pool_look(NOW);
}

static struct pool_partner see_partner(uint64_t now)
{
	struct pool_partner seen = {.group = 0}, found = {.group = 0};

	pool_look(now);
	for (unsigned int i = 0; i < POOL_GROUPS; i++) {
		if (pool_partner(i, gpu, &seen)) {
			assert_int_equal(found.group, 0);
			found = seen;
		}
	}
	assert_int_not_equal(found.group, 0);
	return found;
}

static bool wants(uint64_t now)
{
	return atomic_load(&see_partner(now).view->wants);
}

static bool is_unknown(uint64_t now)
{
	return atomic_load(&see_partner(now).view->is_unknown);
}

static uint64_t moves(uint64_t now)
{
	return atomic_load(&see_partner(now).view->moves);
}

/* --- demand ------------------------------------------------------------------------------------------------------- */

TEST_BY(in_pool, the_list_says_the_claim_and_the_page_the_demand)
{
	unsigned int descriptors = count_descriptors();

	enter();
	struct pool_partner seen = see_partner(NOW);

	assert_each(seen.lend_us, 4000, seen.priority, 50, seen.is_client, true, seen.is_borrower, false,
	            tpcset_equal(&seen.tpcs, &(struct tpcset){{0xff00}}), true, wants(NOW), false, is_unknown(NOW),
	            false);
	say(POOL_WANTS | POOL_BORROWS);
	uint64_t before = moves(NOW);

	assert_each(wants(NOW), true, see_partner(NOW).view->borrowers, 1, is_unknown(NOW), false);
	say(POOL_UNKNOWN);
	assert_each(wants(NOW), false, see_partner(NOW).view->borrowers, 0, is_unknown(NOW), true);
	assert_int_not_equal(moves(NOW), before);
	assert_int_equal(count_descriptors(), descriptors);
}

TEST_BY(in_pool, a_look_holds_for_its_time)
{
	assert_false(pool_is_fresh(NOW, SECOND));
	enter();
	assert_each(pool_is_fresh(NOW + MS - 1, MS), true, pool_is_fresh(NOW + MS, MS), false);
	pool_leave();
	assert_false(pool_is_fresh(NOW, MS));
}

/* As partners read the own page. */
TEST_BY(in_pool, a_program_writes_its_own_slot_and_frees_it)
{
	struct pool_page *mine = map_page(own.page);
	const struct pool_word busy = {.work = 5, .state = POOL_WANTS | POOL_BORROWS};
	const struct pool_slot *there = NULL;
	unsigned int used = 0;

	enter();
	pool_tell(gpu, &busy, NOW);
	for (unsigned int i = 0; i < POOL_SLOTS; i++) {
		used += mine->slots[i].owner != 0;
		there = mine->slots[i].owner != 0 ? &mine->slots[i] : there;
	}
	assert_int_equal(used, 1);
	assert_each(there->check, pool_check(there), there->state, busy.state, there->moves, 1, there->beat, 2,
	            pci_address_equal(there->pci, gpu), true, pool_has_room(), true);
	/* Without news, a sign of life in each 10 ms. */
	pool_tell(gpu, &busy, NOW + 10 * MS - 1);
	assert_each(there->moves, 1, there->beat, 2, pool_own_borrowers(gpu), 0);
	pool_tell(gpu, &busy, NOW + 10 * MS);
	assert_each(there->moves, 1, there->beat, 3, pool_own_borrowers(gpu), 0);
	/* A second program of the group, in another container. */
	slot.pci = gpu;
	slot.state = POOL_BORROWS;
	write_to(mine, there == &mine->slots[9] ? 10 : 9, slot);
	pool_look(NOW);
	assert_int_equal(pool_own_borrowers(gpu), 1);
	pool_leave();
	assert_int_equal(there->owner, 0);
	munmap(mine, POOL_PAGE);
}

TEST_BY(in_pool, a_child_has_no_part_in_the_slots)
{
	struct pool_page *mine = map_page(own.page);

	enter();
	struct pool_page before = *mine;
	pid_t child = fork();

	if (child == 0) {
		pool_after_fork();
		pool_tell(gpu, &idle, NOW);
		pool_leave();
		_exit(pool_is_there());
	}
	assert_ends_well(child);
	assert_memory_equal(mine, &before, POOL_PAGE);
	munmap(mine, POOL_PAGE);
}

/* --- attacks ------------------------------------------------------------------------------------------------------ */

TEST_BY(in_pool, noise_is_no_demand)
{
	enter();
	for (int round = 0; round < 100; round++) {
		uint64_t *words = (uint64_t *)page;

		for (size_t i = 0; i < POOL_PAGE / sizeof *words; i++)
			words[i] = random_state = random_state * 6364136223846793005u + 1442695040888963407u;
		assert_each(wants(NOW + (uint64_t)round), false, is_unknown(NOW), false, moves(NOW), 0,
		            see_partner(NOW).view->borrowers, 0);
	}
}

/* With any content of a page, the TPCs, the priority and LIMIT are from the list. */
TEST_BY(in_pool, a_page_claims_nothing)
{
	enter();
	slot.pci = other_gpu;
	slot.state = UINT64_MAX;
	slot.unused[0] = slot.unused[1] = UINT64_MAX;
	for (unsigned int i = 0; i < POOL_SLOTS; i++)
		write_to(page, i, slot);
	assert_false(wants(NOW));
	say(~0u);
	struct pool_partner seen = see_partner(NOW);

	assert_each(wants(NOW), true, seen.lend_us, 4000, seen.priority, 50, seen.is_borrower, false,
	            tpcset_equal(&seen.tpcs, &(struct tpcset){{0xff00}}), true);
	assert_false(pool_partner(0, other_gpu, &seen) || pool_partner(1, other_gpu, &seen));
}

TEST_BY(in_pool, half_of_a_write_is_none)
{
	enter();
	say(POOL_WANTS);
	page->slots[3].state = POOL_UNKNOWN;
	assert_each(wants(NOW), false, is_unknown(NOW), false);
}

TEST_BY(in_pool, a_dead_or_stopped_writer)
{
	enter();
	say(POOL_WANTS);
	assert_each(wants(NOW), true, wants(NOW + POOL_SILENCE_NS - 1), true, wants(NOW + POOL_SILENCE_NS), false);
	say(POOL_WANTS);
	assert_true(wants(NOW + POOL_SILENCE_NS));
}

/* No load ends the reader. For partners, the group wants all the time. */
TEST_BY(in_pool, a_truncated_page)
{
	enter();
	assert_int_equal(truncate(partner.page, 0), 0);
	assert_each(wants(NOW), true, is_unknown(NOW), true);
	assert_int_equal(truncate(own.page, 0), 0);
	pool_look(NOW);
	pool_tell(gpu, &idle, NOW);
	assert_false(pool_has_room());
	assert_int_equal(truncate(own.page, (off_t)POOL_PAGE), 0);
	pool_tell(gpu, &idle, NOW);
	assert_true(pool_has_room());
}

TEST_BY(in_pool, a_page_of_any_size)
{
	assert_int_equal(truncate(partner.page, 1 << 30), 0);
	enter();
	say(POOL_WANTS);
	assert_true(wants(NOW));
}

/* A longer page takes no room from the other pages, nor from the machine. */
TEST_BY(in_pool, a_page_cannot_fill_anything)
{
	static char much[1 << 20];
	struct pool_place third;
	int file = open(partner.page, O_WRONLY | O_CLOEXEC);
	ssize_t written = pwrite(file, much, sizeof much, 0);

	assert_true(written < (ssize_t)sizeof much);
	close(file);
	enter();
	pool_tell(gpu, &idle, NOW);
	assert_true(pool_has_room());
	/* No further group, until the page is short again. */
	assert_error_has(put("third", revision_of(range(0, 1)), &third), "No space left on device");
	assert_int_equal(truncate(partner.page, (off_t)POOL_PAGE), 0);
	assert_done(put("third", revision_of(range(0, 1)), &third));
}

/* A program without a slot takes the slot of an owner without a change for long. */
TEST_BY(in_pool, a_full_page)
{
	struct pool_page *mine = map_page(own.page);

	for (unsigned int i = 0; i < POOL_SLOTS; i++)
		write_to(mine, i, (struct pool_slot){.owner = 1000 + i, .pci = gpu});
	enter();
	assert_false(pool_has_room());
	pool_tell(gpu, &idle, NOW + POOL_LAPSE_NS - 1);
	assert_false(pool_has_room());
	/* Two owners go on. */
	write_to(mine, 5, (struct pool_slot){.owner = 1005, .pci = gpu, .beat = 1});
	write_to(mine, 6, (struct pool_slot){.owner = 1006, .pci = gpu, .beat = 1});
	pool_tell(gpu, &idle, NOW + POOL_LAPSE_NS);
	assert_each(pool_has_room(), true, mine->slots[5].owner, 1005, mine->slots[6].owner, 1006);
	/* Takes a new slot for a lost slot. */
	for (unsigned int i = 0; i < POOL_SLOTS; i++)
		write_to(mine, i, (struct pool_slot){.owner = i == 20 ? 0 : 2000 + i, .pci = gpu});
	pool_look(NOW + POOL_LAPSE_NS);
	pool_tell(gpu, &idle, NOW + POOL_LAPSE_NS);
	assert_true(pool_has_room() && mine->slots[20].owner != 0);
	munmap(mine, POOL_PAGE);
}

/* With the same beat as the silent one before, and not seen by a look yet. */
TEST_BY(in_pool, a_new_owner_keeps_its_slot)
{
	struct pool_page *mine = map_page(own.page);

	for (unsigned int i = 0; i < POOL_SLOTS; i++)
		write_to(mine, i, (struct pool_slot){.owner = 1000 + i, .pci = gpu});
	enter();
	for (unsigned int i = 0; i < POOL_SLOTS; i++)
		write_to(mine, i, (struct pool_slot){.owner = i == 30 ? 1030 : 3000 + i, .pci = gpu});
	pool_tell(gpu, &idle, NOW + POOL_LAPSE_NS);
	assert_true(pool_has_room() && mine->slots[30].owner != 1030);
	munmap(mine, POOL_PAGE);
}

/* A slot that nobody has written as a program does is free. */
TEST_BY(in_pool, a_page_of_noise)
{
	struct pool_page *mine = map_page(own.page);

	memset(mine, 0x5a, sizeof *mine);
	enter();
	assert_true(pool_has_room());
	munmap(mine, POOL_PAGE);
}

/* Root in a container may be the host's root. No owner, no lease. */
TEST_BY(in_pool, nobody_owns_the_files)
{
	const char *const paths[] = {text_of("%s/" POOL_LIST, own.directory), own.page, partner.page};
	struct stat status;

	for (unsigned int i = 0; i < COUNT_OF(paths); i++) {
		assert_int_equal(stat(paths[i], &status), 0);
		assert_int_equal(status.st_uid, (uid_t)-2);
	}
	assert_int_equal(stat(text_of("%s/" POOLS, work), &status), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
}

/* Of two edits at once, the list gets the later one: the group is read under the list's lock. */
TEST_BY(in_pool, an_edit_waits_for_the_list)
{
	struct segment_revision revision = revision_of(range(4, 5));
	struct group group;
	int list = open(text_of("%s/" POOL_LIST, own.directory), O_RDWR | O_CLOEXEC);

	assert_done(shared_file_lock(list, NULL, &error));
	assert_done(group_file_open(&group, group_path("partner"), &error));
	assert_int_equal(pool_file_change(&group, &revision, &error), -1);
	assert_non_null(strstr(error.reason, "the group has changed, and its pool has not"));
	shared_file_unlock(list);
	assert_done(pool_file_change(&group, &revision, &error));
	group_close(&group);
	close(list);
}

/* A container can open the list for reading, and lock the list. */
TEST_BY(in_pool, locks_for_reading)
{
	const struct segment_revision revision = revision_of(range(4, 5));
	struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	int list = open(text_of("%s/" POOL_LIST, own.directory), O_RDONLY | O_CLOEXEC);

	assert_int_equal(flock(list, LOCK_EX), 0);
	assert_int_equal(fcntl(list, F_OFD_SETLK, &all), 0);
	assert_done(put("partner", revision, &partner));
	assert_done(put("third", revision, &own));
	assert_done(pool_file_remove(group_path("third"), NULL, &error));
	close(list);
}

/* Of a hostile partner, on each page: no open waits. */
TEST_BY(in_pool, a_lease)
{
	int mine = open(own.page, O_RDONLY | O_CLOEXEC), theirs = open(partner.page, O_RDONLY | O_CLOEXEC);

	munmap(page, POOL_PAGE);
	signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(mine, F_SETLEASE, F_RDLCK), 0);
	assert_false(pool_enter(own.directory, own.page));
	close(mine);
	assert_int_equal(fcntl(theirs, F_SETLEASE, F_WRLCK), 0);
	enter();
	/* An unreadable page is no idle group. */
	assert_each(wants(NOW), true, is_unknown(NOW), true);
	close(theirs);
	assert_each(wants(NOW + POOL_SILENCE_NS - 1), true, wants(NOW + POOL_SILENCE_NS), false);
	signal(SIGIO, SIG_DFL);
	page = map_page(partner.page);
}

/* Without a page or a list there is no pool, and no wait. */
TEST_BY(in_pool, other_files)
{
	const char *fifo = text_of("%s/fifo", work), *link = text_of("%s/link", work);

	assert_int_equal(mkfifo(fifo, 0666), 0);
	assert_int_equal(symlink(own.page, link), 0);
	assert_false(pool_enter(own.directory, fifo) || pool_enter(own.directory, link) ||
	             pool_enter(own.directory, work) || pool_enter(own.directory, "/none") ||
	             pool_enter(work, own.page) || pool_enter("/none", own.page));
	assert_false(pool_enter_mounted("own") || pool_enter_mounted("../own") || pool_enter_mounted(""));
	struct pool_memory *list = map_list();

	list->version++;
	assert_false(pool_enter(own.directory, own.page));
	list->version--;
	assert_true(pool_enter(own.directory, own.page));
	munmap(list, sizeof *list);
}

/* --- changes by root ---------------------------------------------------------------------------------------------- */

/* All of the pool may read the claim, and neither the quota nor the memory. */
TEST_BY(in_pool, an_edit_of_the_group_is_seen)
{
	struct segment_revision revision = revision_of(range(12, 15)), listed;
	struct pool_memory *list = map_list();
	struct group group;
	uint64_t number;

	enter();
	revision.rank.priority = segment_rank_of_priority(80);
	revision.lending.lend_us = SEGMENT_LEND_OFF;
	revision.memory = 1 << 30;
	revision.quota = (struct segment_quota){30000, 100000};
	assert_done(group_file_open(&group, group_path("partner"), &error));
	assert_done(pool_file_change(&group, &revision, &error));
	group_close(&group);
	struct pool_partner seen = see_partner(NOW);

	assert_each(seen.priority, 80, seen.lend_us, 0, tpcset_equal(&seen.tpcs, &(struct tpcset){{0xf000}}), true);
	assert_true(revisions_load(list->groups[1].ring, &list->groups[1].number, &listed, &number));
	assert_each(listed.rank.priority, 81, listed.memory, 0, listed.quota.period_us, 0, listed.quota.run_us, 0);
	munmap(list, sizeof *list);
}

/* Containers of the old group may go on writing. */
TEST_BY(in_pool, a_group_that_goes_and_another_that_comes)
{
	struct pool_place third;
	struct pool_partner seen;

	enter();
	say(POOL_WANTS);
	assert_true(wants(NOW));
	assert_done(pool_file_remove(group_path("partner"), NULL, &error));
	pool_look(NOW);
	for (unsigned int i = 0; i < POOL_GROUPS; i++)
		assert_false(pool_partner(i, gpu, &seen));
	assert_done(put("third", revision_of(range(2, 3)), &third));
	say(POOL_WANTS);
	seen = see_partner(NOW);
	assert_each(wants(NOW), false, tpcset_equal(&(struct tpcset){{0xc}}, &seen.tpcs), true);
}

TEST_BY(in_pool, a_pool_is_full_and_an_empty_one_goes)
{
	struct pool_place place;

	for (int i = 2; i < POOL_GROUPS; i++)
		assert_done(put(text_of("group%d", i), revision_of(range(0, 1)), &place));
	assert_error(put("more", revision_of(range(0, 1)), &place),
	             "pool main: it has 16 groups, and room for no more");
	for (int i = 2; i < POOL_GROUPS; i++)
		assert_done(pool_file_remove(group_path(text_of("group%d", i)), NULL, &error));
	assert_done(pool_file_remove(group_path("own"), NULL, &error));
	assert_done(pool_file_remove(group_path("own"), NULL, &error));
	assert_true(pool_file_find(group_path("partner"), NULL, &place));
	assert_done(pool_file_remove(group_path("partner"), NULL, &error));
	assert_int_equal(access(own.directory, F_OK), -1);
	/* A group changes the pool. */
	assert_done(put("own", revision_of(range(0, 1)), &place));
	struct segment_revision revision = revision_of(range(0, 1));

	assert_done(pool_file_put(group_path("own"), "second", &revision, false, &place, &error));
	assert_true(pool_file_find(group_path("own"), "second", &place));
	assert_string_equal(place.name, "main");
	assert_done(pool_file_remove(group_path("own"), "second", &error));
	assert_int_equal(access(own.directory, F_OK), -1);
	assert_true(pool_file_find(group_path("own"), NULL, &place));
	assert_string_equal(place.name, "second");
	/* As a killed command leaves a group. */
	assert_done(put("own", revision_of(range(0, 1)), &place));
	assert_done(pool_file_remove(group_path("own"), NULL, &error));
	assert_false(pool_file_find(group_path("own"), NULL, &place));
}

/* --- claims and rivals -------------------------------------------------------------------------------------------- */

static struct segment segment = {.file = -1};

/* This process has TPCs 0-7. */
static void have_partition(void)
{
	const struct segment_revision revision = revision_of(range(0, 7));

	assert_done(segment_create(&segment, &revision, NULL, -1, -1, &error));
	partition_use(&segment);
}

static struct claims claims;
static struct board_claim self = {.priority = 50, .weight = 100, .group = 1};
static struct claims_rules rules = {.priority = 50, .borrows = true, .borrow = {{UINT64_MAX}}, .is_known = true};

static struct rivals look(uint64_t now)
{
	const struct work one = {.gpu_count = 1, .gpus = {{.pci = gpu, .demand.wants = true}}};

	return peers_look(now, &one, &self);
}

static const struct claim *see(uint64_t now)
{
	static struct claims made;

	look(now);
	claims_see(&made, gpu, &rules);
	if (!claims_are_equal(&made, &claims))
		claims = made;
	return claims.list;
}

static uint64_t idle_ns(void)
{
	struct claims_idle ns;

	claims_look(&claims, &ns);
	return ns.ns[0];
}

/* Half of LIMIT is for late news; and old news are no news. */
TEST_BY(in_pool, a_lender_of_another_container)
{
	struct pool_page *mine = map_page(own.page);
	uint64_t now = process_clock_ns();

	memset(&claims, 0, sizeof claims);
	self.is_client = true;
	have_partition();
	enter();
	say(POOL_WANTS);
	assert_each(see(now)->limit_ns, 2 * MS, claims.count, 1, claims.list[0].borrowers, 1,
	            claims.list[0].lender & SEGMENT_LENDER_GROUP, SEGMENT_LENDER_GROUP);
	assert_int_equal(idle_ns(), 0);
	say(POOL_BORROWS);
	see(process_clock_ns() + SECOND); /* fresh on a slow machine, too */
	idle_ns();
	clock_pause_us(1);
	assert_true(idle_ns() > 0);
	/* With a launch between two looks. */
	say(0);
	see(process_clock_ns() + SECOND);
	assert_int_equal(idle_ns(), 0);
	/* A second program of the own group borrows. */
	slot.state = POOL_BORROWS;
	write_to(mine, 63, slot);
	write_to(mine, 62, slot);
	see(process_clock_ns() + SECOND);
	assert_in_range(claims.list[0].borrowers, 2, 3);
	/* The last look is old. */
	see(process_clock_ns() - 2 * MS);
	idle_ns();
	clock_pause_us(1);
	assert_int_equal(idle_ns(), 0);
	munmap(mine, POOL_PAGE);
	peers_leave();
	segment_close(&segment);
}

/* A group counts once, whatever number of borrowers the page claims. */
TEST_BY(in_pool, many_claimed_borrowers)
{
	struct segment_revision revision = revision_of(range(2, 3));
	struct pool_place third;

	memset(&claims, 0, sizeof claims);
	self.is_client = true;
	have_partition();
	revision.lending = (struct segment_lending){.borrows = SEGMENT_BORROW_SET, .borrow = segment_borrow_all};
	assert_done(put("third", revision, &third));
	struct pool_page *theirs = map_page(third.page);

	enter();
	say(0);
	assert_int_equal(see(process_clock_ns() + SECOND)->borrowers, 1);
	slot.state = POOL_BORROWS;
	for (unsigned int i = 0; i < POOL_SLOTS; i++)
		write_to(theirs, i, slot);
	assert_int_equal(see(process_clock_ns() + SECOND)->borrowers, 2);
	munmap(theirs, POOL_PAGE);
	peers_leave();
	segment_close(&segment);
}

/* In turns, too. Equal priorities mean nothing. */
TEST_BY(in_pool, a_priority_of_another_container)
{
	struct segment_revision revision = revision_of(range(0, 15));

	have_partition();
	enter();
	say(POOL_WANTS);
	assert_each(look(NOW).any, false, look(NOW).equals_wanting, 0);
	for (unsigned int priority = 49; priority <= 51; priority += 2) {
		revision.rank.priority = segment_rank_of_priority(priority);
		assert_done(put("partner", revision, &partner));
		assert_each(look(NOW).any, true, look(NOW).has_higher, priority > 50, look(NOW).has_lower,
		            priority < 50, look(NOW).higher_wanting, priority > 50);
	}
	peers_leave();
	segment_close(&segment);
}

RUN_TESTS_ALONE(NULL, NULL, begin, leave)
