/* The others on this process's GPUs, as the rules see them: processes with work in flight as the test says, on its clock. */
#include "../cases.h"
#include "sets.h"
#include "process.h"

#include "../alone.h"
#include "../own_board.h"
#include "../peer.h"
#include "base/clock.h"
#include "base/memfd_find.h"
#include "driver/gpus.h"
#include "driver/releases.h"
#include "gpu/topology/topology.h"
#include "launch/space/partition.h"
#include "state/board/layout.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "time/demand/peers.h"
#include "time/gate/claims.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define NOW (1000 * SECOND)

static const struct pci_address gpus[] = {{.bus = 0x3b}, {.bus = 0x86}};
static const struct board_claim usual = {.priority = 50, .weight = 100, .group = 1, .served_ns = 7};
static struct board_claim self;

/* 16 TPCs; other GPUs are not known. */
static struct topology topology = {.tpc_count = 16};
static struct gpu first_gpu = {.topology = &topology, .pci = {.bus = 0x3b}};
static bool has_gpus;

const struct gpu *gpus_at(struct pci_address pci)
{
	return has_gpus && pci_address_equal(pci, gpus[0]) ? &first_gpu : NULL;
}

/* --- others ------------------------------------------------------------------------------------------------------- */

static struct board_peer on_board[BOARD_PLACES];

/* In memory that all have. */
static struct board_claim *told;
static struct peer_process peer;

static struct pci_address gpu_of_next; /* of the process that is started next */

static void obey(char order)
{
	struct board_claim before = peer.claim;

	switch (order) {
	case 0:
		board_after_fork();
		peer_begin(&peer, gpu_of_next);
		break;
	case 'c':
		peer.claim = *told;
		peer.claim.segment = before.segment;
		peer.claim.inode = before.inode;
		peer_claim(&peer);
		break;
	case 'l':
		peer_launch(&peer);
		break;
	case 'e':
		peer_end(&peer);
		break;
	case 'q':
		board_leave();
		break;
	case 'g':
		counts_note_gap_everywhere(&peer.segment, COUNTS_SLOT_USED);
		break;
	case 'h': /* its claims name no segment */
		peer.claim.segment = peer.claim.inode = 0;
		break;
	case 'd': /* they name one that cannot be opened */
		close(peer.segment.file);
		break;
	case 'z':
		process_end_first_thread();
		break;
	case 'x':
		execlp("sleep", "sleep", "1000", NULL);
		_exit(1);
	default:
		_exit(2);
	}
}

/* Without a GPU, on the first one. */
static void claim(const struct process *other, struct board_claim claimed)
{
	if (!pci_address_is_known(claimed.pci))
		claimed.pci = gpus[0];
	if (tpcset_is_empty(&claimed.tpcs))
		tpcset_add_range(&claimed.tpcs, 0, TPCSET_MAX - 1);
	if (claimed.group == 0)
		claimed.group = (uint64_t)other->pid;
	claimed.weight = 100;
	*told = claimed;
	process_order(other, 'c');
}

static void launch(const struct process *other)
{
	process_order(other, 'l');
}

static void end(const struct process *other)
{
	process_order(other, 'e');
}

/* One that claims this, with work in flight. */
static struct process start_busy(struct board_claim claimed)
{
	struct process other = process_start(obey);

	claim(&other, claimed);
	launch(&other);
	return other;
}

static int setup(void **state)
{
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return told == MAP_FAILED ? -1 : 0;
}

FIXTURE(begin)
{
	self = usual;
	gpu_of_next = gpus[0];
	peers_join(&group_closed);
}

#define OURS "/memfd:nvtaskset"

static struct segment segment = {.file = -1}; /* with a partition of this process */

/* Nothing of the others is left. */
FIXTURE(leave)
{
	peers_leave();
	segment_close(&segment);
	processes_end();
	has_gpus = first_gpu.has_masks = false;
	assert_int_equal(count_mappings(OURS), 0);
}

static struct rivals look_on(uint64_t now, unsigned int count, bool wants_first, bool wants_second)
{
	const struct work work = {
		.gpu_count = count,
		.gpus = {{.pci = gpus[0], .demand.wants = wants_first}, {.pci = gpus[1], .demand.wants = wants_second}},
	};

	return peers_look(now, &work, &self);
}

static struct rivals look(uint64_t now)
{
	return look_on(now, 1, true, false);
}

/* The one of this number. */
static const struct peer *peer_on(struct pci_address pci, unsigned int number)
{
	unsigned int at = 0;

	while (number > 0 && peers_next(pci, &at))
		number--;
	return peers_next(pci, &at);
}

static bool is_nobody(struct rivals found)
{
	return !found.any && !found.has_higher && !found.group_is_present &&
	       found.higher_wanting + found.lower_wanting + found.equals_present + found.equals_wanting == 0 &&
	       found.higher_idle_ns == UINT64_MAX && found.least_served_ns == UINT64_MAX;
}

static void assert_own(struct tpcset expected)
{
	look(NOW);
	struct tpcset own = peers_own(gpus[0]);

	assert_true(tpcset_equal(&own, &expected));
}

/* --- who is there ------------------------------------------------------------------------------------------------- */

TEST(nobody)
{
	assert_true(is_nobody(look(NOW)));
	assert_null(peer_on(gpus[0], 0));
	/* A GPU that is not known is not the same as another's. */
	const struct work unknown = {.gpu_count = 1, .gpus = {{.demand.wants = true}}};

	assert_true(is_nobody(peers_look(NOW, &unknown, &self)));
	peers_leave();
	assert_true(is_nobody(look(NOW)));
}

/* What others do is seen by the look after it, whatever else they do. */
TEST(seen_at_once)
{
	struct process other = process_start(obey);

	claim(&other, (struct board_claim){.priority = 60});
	for (uint64_t at = 0; at < 20; at++) {
		ROW("%d", (int)at);
		assert_true(look(NOW + at).has_higher && look(NOW + at).higher_wanting == 0);
		launch(&other);
		assert_true(look(NOW + at).higher_wanting);
		end(&other);
	}
}

TEST(higher)
{
	struct process one = start_busy((struct board_claim){.priority = 60}), two = process_start(obey);
	struct rivals found;

	claim(&two, (struct board_claim){.priority = 51});
	found = look(NOW);
	assert_true(found.any && found.has_higher && found.higher_wanting);
	assert_each(found.higher_wanting, 1, found.higher_idle_ns, 0, found.equals_wanting, 0, found.lower_wanting, 0);
	launch(&two);
	assert_int_equal(look(NOW + MS).higher_wanting, 2);
	end(&one);
	end(&two);
	found = look(NOW + 2 * MS);
	assert_each(found.has_higher, true, found.higher_wanting, 0, found.higher_idle_ns, 0);
	launch(&two);
	assert_int_equal(look(NOW + 3 * MS).higher_idle_ns, 0);
	end(&two);
	look(NOW + 4 * MS);
	/* Of several, for as long as the one that was busy last. */
	assert_int_equal(look(NOW + 7 * MS).higher_idle_ns, 3 * MS);
}

/* It takes none of the GPU's time. */
TEST(higher_suspended)
{
	start_busy((struct board_claim){.priority = 60, .is_suspended = true});
	struct rivals found = look(NOW);

	assert_each(found.has_higher, true, found.higher_wanting, 0);
	assert_true(found.higher_idle_ns == UINT64_MAX);
}

TEST(equals)
{
	struct process one = start_busy((struct board_claim){.priority = 50, .served_ns = 300});
	struct process two = start_busy((struct board_claim){.priority = 50, .served_ns = 200});
	struct rivals found = look(NOW);

	assert_each(found.any, true, found.has_lower, false, found.has_higher, false);
	assert_each(found.equals_present, 2, found.equals_wanting, 2);
	assert_each(found.least_served_ns, 200, found.lower_wanting, 2, found.group_is_present, false);
	assert_false(found.equals_pause);
	/* By its own word: what this process sees of it may be another thing. */
	claim(&two, (struct board_claim){.priority = 50, .served_ns = 200, .pauses = true});
	assert_true(look(NOW).equals_pause);
	claim(&two, (struct board_claim){.priority = 50, .served_ns = 200, .pauses = true, .is_suspended = true});
	found = look(NOW);
	assert_false(found.equals_pause);
	assert_each(found.equals_present, 1, found.equals_wanting, 2, found.least_served_ns, 300);
	/* One that has met nobody yet has no share that counts. */
	claim(&one, (struct board_claim){.priority = 50});
	assert_true(look(NOW).least_served_ns == UINT64_MAX);
	uint64_t at = NOW + MS;

	for (; at < NOW + 10 * MS; at += MS)
		look(at);
	/* It is there for three looks more. */
	end(&one);
	for (int more = 1; more < 3; more++)
		assert_int_equal(look(at + (uint64_t)more * MS).equals_present, 1);
	assert_int_equal(look(at + 3 * MS).equals_present, 0);
}

TEST(own_group)
{
	struct board_claim member = {.priority = 50, .group = 77, .served_ns = 5};
	struct process one = start_busy(member);

	start_busy((struct board_claim){.priority = 50, .served_ns = 9});
	self.group = 77;
	struct rivals found = look(NOW);

	assert_each(found.group_is_present, true, found.least_served_ns, 9, found.equals_present, 2, found.lower_wanting, 1);
	end(&one);
	for (uint64_t at = 1; at < 4; at++)
		found = look(NOW + at * MS);
	assert_each(found.group_is_present, false, found.equals_present, 1);
}

/* Members of a group are one. */
TEST(lower)
{
	struct board_claim member = {.priority = 20, .group = 77};
	struct process others[] = {start_busy(member), start_busy(member), start_busy((struct board_claim){.priority = 49})};
	struct rivals found = look(NOW);

	assert_each(found.any, true, found.has_lower, true, found.has_higher, false, found.equals_present, 0);
	assert_each(found.equals_wanting, 0, found.lower_wanting, 2, found.least_served_ns, UINT64_MAX);
	end(&others[0]);
	assert_int_equal(look(NOW).lower_wanting, 2);
	end(&others[1]);
	assert_int_equal(look(NOW).lower_wanting, 1);
}

/* Those that have left the board leave nothing here, and the others are still known. */
TEST(those_that_leave)
{
	struct board_claim claimed = {.priority = 60};
	struct process others[] = {start_busy(claimed), start_busy(claimed), start_busy(claimed)};

	assert_int_equal(look(NOW).higher_wanting, 3);
	assert_int_equal(count_mappings(OURS), 1 + 3 * 2);
	process_order(&others[0], 'q');
	end(&others[1]);
	assert_int_equal(look(NOW + MS).higher_wanting, 1);
	assert_int_equal(look(NOW + 4 * MS).higher_idle_ns, 0);
	end(&others[2]);
	assert_int_equal(look(NOW + 5 * MS).higher_wanting, 0);
	assert_int_equal(look(NOW + 6 * MS).higher_idle_ns, MS);
	assert_int_equal(count_mappings(OURS), 1 + 2 * 2);
	process_order(&others[1], 'q');
	process_order(&others[2], 'q');
	assert_true(is_nobody(look(NOW + 7 * MS)));
	assert_int_equal(count_mappings(OURS), 1);
}

static void have(unsigned int from, unsigned int to)
{
	const struct segment_revision revision = {.count = 1, .partitions = {{.pci = gpus[0], .set = range(from, to)}}};
	struct segment editor;
	struct error error;

	if (segment.memory) {
		assert_int_equal(segment_open(&editor, getpid(), NULL, NULL), SEGMENT_FOUND);
		assert_done(segment_change(&editor, &revision, NULL, &error));
		segment_close(&editor);
	} else {
		assert_done(segment_create(&segment, &revision, NULL, -1, -1, &error));
		partition_use(&segment);
	}
}

/* --- the gate's view of them ----------------------------------------------------------------------------------------- */

unsigned int releases_places(struct pci_address pci, const struct counts_place *places[], unsigned int room)
{
	return 0;
}

static struct claims claims;
static struct claims_rules rules;
static unsigned int changes; /* of the claims */

/* As our thread does: equal claims stay. */
static struct claims *see(uint64_t now)
{
	static struct claims made;

	look(now);
	claims_see(&made, gpus[0], &rules);
	if (!claims_are_equal(&made, &claims)) {
		claims = made;
		changes++;
	}
	return &claims;
}

static uint32_t open_now(void)
{
	struct claims_idle idle;

	claims_look(&claims, &idle);
	return idle.open;
}

static void assert_may_use(struct tpcset expected)
{
	struct tpcset tpcs = claims_tpcs(&claims, open_now());

	assert_true(tpcset_equal(&tpcs, &expected));
}

/* The second look finds a claim idle. */
static void assert_soon_may_use(struct tpcset expected)
{
	open_now();
	clock_pause_us(1);
	assert_may_use(expected);
}

static void begin_view(unsigned int from, unsigned int to, struct tpcset borrow)
{
	has_gpus = first_gpu.has_masks = true;
	self.is_client = true;
	memset(&claims, 0, sizeof claims);
	rules = (struct claims_rules){.priority = 50, .borrows = !tpcset_is_empty(&borrow), .borrow = borrow, .is_known = true};
	have(from, to);
}

/* Its TPCs may be used while the higher program has nothing in flight. */
TEST(higher_clients)
{
	struct process one = start_busy((struct board_claim){.priority = 60, .is_client = true, .tpcs = range(4, 9)});

	start_busy((struct board_claim){.priority = 60}); /* no client */
	begin_view(0, 7, (struct tpcset){{0}});
	assert_each(see(NOW)->count, 1, claims.has_part, true, claims.is_narrow, true, claims.list[0].borrowers, 1);
	assert_soon_may_use(range(0, 3));
	end(&one);
	assert_may_use(range(0, 3));
	assert_soon_may_use(range(0, 7));
	launch(&one);
	assert_soon_may_use(range(0, 3));
	end(&one);
	have(4, 7);
	assert_each(see(NOW + MS)->has_part, false, claims.is_narrow, false);
	assert_soon_may_use(range(4, 7));
}

/* Who lends, to whom, and for how long. What somebody else has as well, who does not lend, is not lent. */
TEST(lenders)
{
	struct board_claim lender = {.priority = 50, .is_client = true, .lend_us = 300, .tpcs = range(8, 13)};
	struct board_claim keeper = {.priority = 50, .is_client = true, .tpcs = range(12, 15)};
	struct board_claim borrower = {.priority = 50, .is_client = true, .is_borrower = true, .lend_us = 9000, .tpcs = range(6, 7)};
	struct process one = start_busy(lender), three = process_start(obey);

	start_busy(keeper);
	begin_view(0, 3, range(5, 15));
	assert_each(see(NOW)->count, 1, claims.list[0].limit_ns, 300000, claims.list[0].borrowers, 1, claims.is_narrow, false);
	assert_soon_may_use(range(0, 3));
	end(&one);
	assert_soon_may_use(tpcset_or(&(struct tpcset){{0xf}}, &(struct tpcset){{0xf00}}));
	/* Each has its part of the window. */
	claim(&three, borrower);
	assert_each(see(NOW + MS)->count, 2, claims.list[0].limit_ns, 300000, claims.list[0].borrowers, 2);
	/* But not one that has these TPCs itself. */
	borrower.tpcs = range(8, 14);
	claim(&three, borrower);
	assert_int_equal(see(NOW + MS)->list[0].borrowers, 1);
	borrower.tpcs = range(6, 7);
	/* What it lends itself, it does not borrow. */
	borrower.lend_us = 200;
	claim(&three, borrower);
	assert_each(see(NOW + MS)->count, 2, claims.list[0].borrowers, 2, claims.list[1].borrowers, 1);
	rules.borrow = range(9, 9);
	see(NOW + 2 * MS);
	assert_soon_may_use(tpcset_or(&(struct tpcset){{0xf}}, &(struct tpcset){{0x200}}));
	/* The same is the same, and anything else is not. */
	unsigned int before = changes;

	see(NOW + 3 * MS);
	assert_int_equal(changes, before);
	rules.borrow = range(8, 9);
	see(NOW + 4 * MS);
	assert_int_equal(changes, before + 1);
	rules.borrows = false;
	assert_int_equal(see(NOW + 5 * MS)->count, 0);
}

/* A borrower that has been idle for a tenth of a second has no part of the window, until the borrower launches again. */
TEST(a_borrower_at_rest)
{
	struct board_claim lender = {.priority = 50, .is_client = true, .lend_us = 300, .tpcs = range(8, 13)};
	struct board_claim borrower = {.priority = 50, .is_client = true, .is_borrower = true, .tpcs = range(4, 7)};
	struct process one = process_start(obey), two;

	claim(&one, lender);
	two = start_busy(borrower);
	begin_view(0, 3, range(0, 15));
	see(NOW);
	end(&two);
	assert_int_equal(see(NOW + MS)->list[0].borrowers, 2);
	assert_int_equal(see(NOW + 101 * MS - 1)->list[0].borrowers, 2);
	assert_int_equal(see(NOW + 101 * MS)->list[0].borrowers, 1);
	launch(&two);
	assert_int_equal(see(NOW + 102 * MS)->list[0].borrowers, 2);
}

/* The window is whole after twice LIMIT, also where two borrowers share the window. */
TEST(idle_for_long_enough)
{
	struct board_claim lender = {.priority = 50, .is_client = true, .lend_us = 300, .tpcs = range(8, 13)};
	struct process one = process_start(obey), two = process_start(obey);
	struct claims_idle idle;

	begin_view(0, 3, range(0, 15));
	claim(&one, lender);
	claim(&two, (struct board_claim){.priority = 50, .is_client = true, .is_borrower = true, .tpcs = range(4, 7)});
	see(NOW);
	claims_look(&claims, &idle);
	assert_each(idle.open, 0, idle.now != 0, true);
	clock_pause_us(700);
	claims_look(&claims, &idle);
	assert_true(idle.ns[0] >= lending_rest_ns(300000));
	/* From here on the claim is at rest: no look reads the clock. */
	claims_look(&claims, &idle);
	assert_each(idle.ns[0], lending_rest_ns(300000), idle.now, 0, idle.open, 1);
	launch(&one);
	end(&one);
	claims_look(&claims, &idle);
	assert_each(idle.ns[0], 0, idle.open, 0);
}

/* Nobody knows when the other program is idle: a lender is never idle, and a higher program is where nothing moves. */
TEST(unknown_ends)
{
	struct board_claim lender = {.priority = 50, .is_client = true, .lend_us = 300, .tpcs = range(8, 13)};
	struct process one = start_busy(lender);

	begin_view(0, 7, range(0, 15));
	see(NOW);
	end(&one);
	assert_soon_may_use(range(0, 13));
	process_order(&one, 'g');
	assert_soon_may_use(range(0, 7));
	see(NOW + MS);
	assert_soon_may_use(range(0, 7));
	lender.priority = 60;
	lender.tpcs = range(0, 7);
	claim(&one, lender);
	see(NOW + SECOND);
	assert_may_use(range(0, 7));
}

/* Its own TPCs come back to who has a higher priority; what it lends does not, where nobody knows when it is idle. */
TEST(higher_one_that_lends)
{
	struct board_claim lender = {.priority = 60, .is_client = true, .lend_us = 300, .tpcs = range(4, 13)};
	struct process one = start_busy(lender);

	begin_view(0, 7, range(0, 15));
	see(NOW);
	end(&one);
	assert_soon_may_use(range(0, 13));
	process_order(&one, 'g');
	assert_true(see(NOW + SECOND)->list[0].is_unknown);
	assert_true(tpcset_equal(&claims.list[0].gives, &(struct tpcset){{0xf0}}));
}

/* Claims that find no room keep their TPCs, also TPCs that others lend. */
TEST(many_lenders)
{
	struct board_claim lender = {.priority = 50, .is_client = true, .lend_us = 300};
	struct process all[CLAIMS_MAX + 1];

	begin_view(0, 3, range(0, 63));
	for (unsigned int i = 0; i <= CLAIMS_MAX; i++) {
		lender.tpcs = range(8 + i, i == CLAIMS_MAX ? 8 + i : 9 + i);
		all[i] = process_start(obey);
		claim(&all[i], lender);
	}
	assert_int_equal(see(NOW)->count, CLAIMS_MAX);
	open_now();
	clock_pause_us(1);
	assert_int_equal(open_now(), 0xffff);
	struct tpcset tpcs = claims_tpcs(&claims, 0xffff), last = peer_on(gpus[0], CLAIMS_MAX)->is.claim.tpcs;

	assert_false(tpcset_overlap(&tpcs, &last));
}

/* About a launch. */
static struct decision decide(void)
{
	const struct launch launch = {.gpu = &first_gpu, .edits = segment_revision_number(&segment)};
	struct decision decision;

	partition_decide(&launch, &decision);
	return decision;
}

/* Where the partition cannot be enforced, or is not known, the process may be on any TPC. */
TEST(own_tpcs)
{
	const struct tpcset all = range(0, TPCSET_MAX - 1), of_gpu = topology_all(&topology);

	has_gpus = first_gpu.has_masks = true;
	have(20, 30); /* the GPU has no such TPC */
	assert_own(of_gpu);
	have(0, 3);
	assert_own((struct tpcset){{0xf}});
	decide();
	have(20, 30); /* the partition before stays in force */
	assert_own((struct tpcset){{0xf}});
	/* The note is left to the next launch. */
	assert_int_equal(decide().notes, 1 << SEGMENT_NO_SUCH_TPC);
	have(0, 3);
	first_gpu.has_masks = false;
	assert_own(all);
	first_gpu.has_masks = true;
	has_gpus = false;
	assert_own(all);
}

/* --- who is not waited for ------------------------------------------------------------------------------------------ */

/* 10 ms after a look that has seen it at work, at the latest. */
static void assert_waits_until(uint64_t from, bool waits)
{
	for (uint64_t at = from; at < from + 10 * MS; at += MS)
		look(at);
	assert_true(look(from + 10 * MS).higher_wanting == waits);
}

TEST(killed)
{
	struct process other = start_busy((struct board_claim){.priority = 60});

	assert_waits_until(NOW, true);
	process_end(&other);
	assert_waits_until(NOW + 11 * MS, false);
	assert_true(is_nobody(look(NOW + SECOND)));
	/* Its place is free. */
	assert_int_equal(board_read(gpus[0], on_board), 0);
}

/* It was idle for long, and begins just before. */
TEST(killed_soon)
{
	struct process other = process_start(obey);

	claim(&other, (struct board_claim){.priority = 60});
	for (uint64_t at = 0; at < 990; at += 10)
		look(NOW + at * MS);
	launch(&other);
	assert_true(look(NOW + 990 * MS).higher_wanting);
	process_end(&other);
	assert_waits_until(NOW + 991 * MS, false);
}

TEST(stopped)
{
	struct process other = start_busy((struct board_claim){.priority = 60});

	assert_waits_until(NOW, true);
	kill(other.pid, SIGSTOP);
	process_wait(&other, WSTOPPED);
	assert_waits_until(NOW + 11 * MS, false);
	kill(other.pid, SIGCONT);
	process_wait(&other, WCONTINUED);
	assert_waits_until(NOW + 22 * MS, true);
}

/* Before the first look, so that its segment is opened then, too. */
TEST(without_its_first_thread)
{
	struct process other = start_busy((struct board_claim){.priority = 60});

	process_order_end_of_first_thread(&other, 'z');
	assert_waits_until(NOW, true);
	kill(other.pid, SIGSTOP);
	process_wait(&other, WSTOPPED);
	assert_waits_until(NOW + 11 * MS, false);
}

TEST(executed)
{
	struct process other = start_busy((struct board_claim){.priority = 60});
	char answer;

	assert_waits_until(NOW, true);
	assert_int_equal(write(other.orders, "x", 1), 1);
	assert_int_equal(read(other.answers, &answer, 1), 0);
	assert_waits_until(NOW + 11 * MS, false);
}

TEST(unreadable)
{
	for (const char *how = "hd"; *how; how++) {
		struct process other = process_start(obey);

		ROW("%c", *how);
		process_order(&other, *how);
		claim(&other, (struct board_claim){.priority = 60});
		launch(&other);
		assert_true(is_nobody(look(NOW)));
		assert_waits_until(NOW, false);
		process_end(&other);
	}
}

/* For as long as this process has no descriptor to spare, others cannot be read; then they are. */
TEST(own_limits)
{
	bool is_seen;

	start_busy((struct board_claim){.priority = 60});
	with_limit(RLIMIT_NOFILE, 0, is_seen = look(NOW).any);
	assert_false(is_seen);
	assert_waits_until(NOW, true);
}

TEST(two_gpus)
{
	struct process one = process_start(obey);

	gpu_of_next = gpus[1];
	struct process two = process_start(obey);

	claim(&one, (struct board_claim){.priority = 60});
	claim(&two, (struct board_claim){.pci = gpus[1], .priority = 50, .served_ns = 9});
	launch(&two);
	/* A higher one, although it is idle, comes before an equal one. */
	assert_true(look_on(NOW, 2, true, true).has_higher);
	/* But a GPU on which the program has work comes first. */
	assert_int_equal(look_on(NOW, 2, false, true).equals_wanting, 1);
	assert_false(look_on(NOW, 2, false, true).has_higher);
	assert_true(look_on(NOW, 2, true, false).has_higher);
	/* A higher one at work comes before one that is idle. */
	claim(&two, (struct board_claim){.pci = gpus[1], .priority = 70});
	assert_true(look_on(NOW, 2, true, true).higher_wanting);
	end(&two);
	look_on(NOW, 2, true, true);
	launch(&one);
	assert_true(look_on(NOW, 2, true, true).higher_wanting);
	end(&one);
	/* Of two that are idle, the one that was busy last. */
	look_on(NOW + MS, 2, true, true);
	look_on(NOW + 2 * MS, 2, true, true);
	assert_int_equal(look_on(NOW + 3 * MS, 2, true, true).higher_idle_ns, 2 * MS);
	launch(&two);
	look_on(NOW + 4 * MS, 2, true, true);
	end(&two);
	look_on(NOW + 5 * MS, 2, true, true);
	assert_int_equal(look_on(NOW + 6 * MS, 2, true, true).higher_idle_ns, MS);
	/* A GPU that it has left is nobody's. */
	look_on(NOW + 7 * MS, 1, true, false);
	assert_null(peer_on(gpus[1], 0));
}

TEST(no_place_left)
{
	struct process other = process_start(obey);

	own_board_fill(other.pid);
	look(NOW);
	assert_false(board_has_room());
	own_board_fill(0);
	look(NOW + SECOND);
	assert_true(board_has_room());
	peers_leave();
	assert_true(board_has_room());
}

/* As another reads it. */
TEST(own_claims)
{
	self.is_suspended = self.pauses = true;
	self.group = 12;
	self.segment = 60;
	self.inode = 61;
	look(NOW);
	look(NOW + MS);
	pid_t parent = getpid(), reader = fork();

	if (reader == 0) {
		peers_after_fork();
		bool is_right = board_join(NULL) == 0 && board_read(gpus[0], on_board) == 1;
		const struct board_claim *claimed = &on_board[0].claim;

		is_right = is_right && on_board[0].pid == parent && claimed->priority == 50 && claimed->weight == 100 &&
		           claimed->served_ns == 7 && claimed->is_suspended && claimed->pauses && !claimed->is_client &&
		           claimed->group == 12 && claimed->segment == 60 && claimed->inode == 61 && claimed->written == NOW + MS;
		_exit(is_right ? 0 : 1);
	}
	assert_ends_well(reader);
}

/* Two boards become one after 20 ms, 140 ms, a second, and then within ten. */
TEST(searches)
{
	const uint64_t moments[] = {20 * MS, 140 * MS, 860 * MS, 5180 * MS, 15180 * MS, 25180 * MS};
	uint64_t now = NOW;

	look(now);
	for (size_t i = 0; i < COUNT_OF(moments); i++) {
		int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		/* The program closes the descriptor: this is found by the next search, which then makes a new one. */
		close(memfd_next(directory, 0, BOARD_LINK, NULL));
		for (; now < NOW + moments[i]; now += 5 * MS) {
			look(now);
			assert_int_equal(memfd_next(directory, 0, BOARD_LINK, NULL), -1);
		}
		for (; memfd_next(directory, 0, BOARD_LINK, NULL) < 0; now += MS / 8) {
			look(now);
			assert_true(now < NOW + moments[i] + 100 * MS);
		}
		for (int part = 0; part < 100; part++)
			look(now);
		close(directory);
	}
}

RUN_TESTS_ALONE(setup, NULL, begin, leave)
