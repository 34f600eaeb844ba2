/* What the rules are told of others on this process's GPUs: others that say what the test tells them, on its clock. */
#include "process.h"

#include "../alone.h"
#include "base/memfd_find.h"
#include "driver/gpus.h"
#include "gpu/topology/topology.h"
#include "shim/neighbours.h"
#include "state/board.h"
#include "state/board_layout.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define NOW (1000 * SECOND)

static const struct pci_address gpus[] = {{.bus = 0x3b}, {.bus = 0x86}};
static struct neighbours_self self = {.priority = 50, .weight = 100, .served_ns = 7};

/* --- its GPUs ------------------------------------------------------------------------------------------------------ */

/* 16 TPCs; other GPUs are not known. */
static struct topology topology = {.tpc_count = 16};
static const struct gpu first_gpu = {.topology = &topology};
static bool has_gpus, has_masks;

const struct gpu *gpus_at(struct pci_address pci)
{
	return has_gpus && pci_address_equal(pci, gpus[0]) ? &first_gpu : NULL;
}

bool gpus_have_masks(const struct gpu *gpu)
{
	(void)gpu;
	return has_masks;
}

/* --- others ------------------------------------------------------------------------------------------------------- */

/* What they say is in memory that all have. */
static struct board_claim *told;

static void obey(char order)
{
	if (order == 0) {
		board_after_fork();
		if (board_join(NULL) < 0)
			_exit(1);
	} else if (!board_claim(told)) {
		_exit(1);
	}
}

static void say(const struct process *other, struct board_claim claim)
{
	claim.weight = 100;
	if (tpcset_is_empty(&claim.tpcs))
		tpcset_add_range(&claim.tpcs, 0, TPCSET_MAX - 1);
	*told = claim;
	process_order(other, 's');
}

static int setup(void **state)
{
	(void)state;
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return told == MAP_FAILED ? -1 : 0;
}

static int leave(void **state)
{
	(void)state;
	neighbours_leave();
	has_gpus = has_masks = self.is_client = false;
	return 0;
}

/* --- this one ----------------------------------------------------------------------------------------------------- */

static struct neighbours look_on(uint64_t now, unsigned int count, bool wants_first, bool wants_second)
{
	const struct sight sight = {
		.gpu_count = count,
		.gpus = {{.pci = gpus[0], .wants = wants_first}, {.pci = gpus[1], .wants = wants_second}},
	};

	return neighbours_look(now, &sight, &self);
}

static struct neighbours look(uint64_t now, bool wants)
{
	return look_on(now, 1, wants, false);
}

/* How often this process has said anything, in all of its places. */
static uint64_t times_said(void)
{
	int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int file = memfd_reopen(memfd_next(directory, 0, BOARD_LINK));
	struct board_memory *memory = mmap(NULL, sizeof *memory, PROT_READ, MAP_SHARED, file, 0);
	uint64_t count = 0;

	assert_ptr_not_equal(memory, MAP_FAILED);
	for (int i = 0; i < BOARD_PLACES; i++)
		count += atomic_load(&memory->places[i].number);
	munmap(memory, sizeof *memory);
	close(file);
	close(directory);
	return count;
}

static bool is_known(struct neighbours found)
{
	return found.any || found.has_higher || found.higher_wants || found.equals_wanting > 0 || found.equals_present > 0;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static void test_nobody(void **state)
{
	(void)state;
	assert_false(is_known(look(NOW, true)));
	assert_false(board_is_joined());
	neighbours_join();
	assert_true(board_is_joined());
	assert_false(is_known(look(NOW, true)));
	assert_true(look(NOW, true).least_served_ns == UINT64_MAX);
	/* Alone, it says so once a second. */
	for (uint64_t now = NOW; now < NOW + 3 * SECOND; now += MS)
		look(now, now / MS % 2 == 0);
	assert_int_equal(times_said(), 3);
	/* A GPU that is not known is nobody's neighbour. */
	const struct sight unknown = {.gpu_count = 1, .gpus = {{.wants = true}}};
	neighbours_look(NOW + 10 * SECOND, &unknown, &self);
	assert_int_equal(times_said(), 3);
	neighbours_leave();
	assert_false(board_is_joined());
	assert_false(is_known(look(NOW, true)));
}

static void test_higher(void **state)
{
	struct process other = process_start(obey), third = process_start(obey);
	struct neighbours found;

	(void)state;
	neighbours_join();
	say(&other, (struct board_claim){.pci = gpus[0], .priority = 60, .said = NOW});
	found = look(NOW, true);
	assert_true(found.any && found.has_higher && !found.higher_wants);
	say(&other, (struct board_claim){.pci = gpus[0], .priority = 60,
	                         .wants = true, .wants_since = NOW - 5, .said = NOW});
	found = look(NOW, true);
	assert_true(found.higher_wants);
	assert_int_equal(found.higher_wanting, 1);
	assert_int_equal(found.higher_since, NOW - 5);
	assert_int_equal(found.equals_wanting, 0);
	/* Of several, who has wanted for longest; but not who is aside: it takes no time. */
	say(&third, (struct board_claim){.pci = gpus[0], .priority = 51,
	                         .wants = true, .wants_since = NOW - 9, .said = NOW});
	assert_int_equal(look(NOW, true).higher_since, NOW - 9);
	assert_int_equal(look(NOW, true).higher_wanting, 2);
	say(&third, (struct board_claim){.pci = gpus[0], .priority = 51,
	                         .wants = true, .wants_since = NOW - 9, .is_aside = true, .said = NOW});
	assert_int_equal(look(NOW, true).higher_since, NOW - 5);
	say(&other, (struct board_claim){.pci = gpus[0], .priority = 60, .said = NOW});
	found = look(NOW, true);
	assert_true(found.has_higher && !found.higher_wants);
	/* Who is stopped wants for no longer than a claim holds. */
	say(&other, (struct board_claim){.pci = gpus[0], .priority = 60,
	                         .wants = true, .wants_since = NOW, .said = NOW});
	assert_true(look(NOW + BOARD_FRESH_NS, true).higher_wants);
	assert_false(look(NOW + BOARD_FRESH_NS + 1, true).higher_wants);
	assert_true(look(NOW + BOARD_FRESH_NS, true).higher_speaks);
	assert_true(look(NOW + BOARD_FRESH_NS + 1, true).has_higher);
	assert_false(look(NOW + BOARD_FRESH_NS + 1, true).higher_speaks);
	/* A client of MPS is somebody, too. */
	say(&other, (struct board_claim){.pci = gpus[0], .priority = 60,
	                         .wants = true, .is_client = true, .wants_since = NOW, .said = NOW});
	assert_true(look(NOW, true).higher_wants);
	process_end(&other);
	process_end(&third);
}

static void test_equals_and_lower(void **state)
{
	struct process other = process_start(obey), third = process_start(obey);
	struct board_claim equal = {.pci = gpus[0], .priority = 50, .wants = true, .wants_since = NOW, .said = NOW};
	struct neighbours found;

	(void)state;
	neighbours_join();
	say(&other, (struct board_claim){.pci = gpus[0], .priority = 49,
	                         .wants = true, .wants_since = NOW, .said = NOW});
	found = look(NOW, true);
	assert_true(found.any && !found.has_higher && found.equals_wanting == 0 && found.least_served_ns == UINT64_MAX);
	assert_true(found.has_rivals);
	equal.served_ns = 300;
	say(&other, equal);
	equal.served_ns = 200;
	say(&third, equal);
	found = look(NOW, true);
	assert_int_equal(found.equals_present, 2);
	assert_int_equal(found.equals_wanting, 2);
	assert_int_equal(found.equals_speaking, 2);
	assert_int_equal(found.least_served_ns, 200);
	equal.is_aside = true;
	say(&third, equal);
	found = look(NOW, true);
	assert_int_equal(found.equals_present, 1);
	assert_int_equal(found.equals_wanting, 2);
	assert_int_equal(found.least_served_ns, 300);
	process_end(&other);
	process_end(&third);
}

/* What it says itself, as another reads it. */
static void test_own_claims(void **state)
{
	static struct board_claim claims[BOARD_PLACES];
	struct process other = process_start(obey);

	(void)state;
	neighbours_join();
	say(&other, (struct board_claim){.pci = gpus[0], .said = NOW});
	for (int i = 0; i < 10; i++)
		look(NOW + i * MS, i > 3);
	assert_int_equal(times_said(), 11);
	/* As a second process would: this one forgets, joins anew, and reads what stands there. */
	pid_t reader = fork();

	if (reader == 0) {
		neighbours_after_fork();
		bool is_right = !board_is_joined() && board_join(NULL) == 0;

		is_right = is_right && board_read(gpus[0], NOW + 9 * MS, claims) == 2;

		for (int i = 0; i < 2 && is_right; i++)
			is_right = claims[i].priority == 0 || (claims[i].wants && claims[i].wants_since == NOW + 4 * MS &&
			                                       claims[i].priority == 50 && claims[i].weight == 100 &&
			                                       claims[i].served_ns == 7 && claims[i].said == NOW + 9 * MS);
		_exit(is_right ? 0 : 1);
	}
	int status;

	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
	process_end(&other);
}

/* --- who shares TPCs ----------------------------------------------------------------------------------------------- */

static struct tpcset range(unsigned int first, unsigned int last)
{
	struct tpcset set = {{0}};

	tpcset_add_range(&set, first, last);
	return set;
}

/* This process has these TPCs of the first GPU. */
static void have(struct tpcset set)
{
	struct segment_revision revision = {.count = 1, .partitions = {{.pci = gpus[0], .set = set}}};

	has_gpus = has_masks = true;
	neighbours_have(&revision);
}

static struct neighbours_on_gpu seen(void)
{
	struct neighbours_on_gpu found;

	look(NOW, true);
	assert_true(neighbours_seen(0, &found));
	assert_false(neighbours_seen(1, &found));
	assert_true(pci_address_equal(found.pci, gpus[0]));
	return found;
}

static bool is_range(struct tpcset set, unsigned int first, unsigned int last)
{
	struct tpcset wanted = range(first, last);

	return tpcset_equal(&set, &wanted);
}

static void test_own_tpcs(void **state)
{
	struct segment_revision none = {.count = 0};

	(void)state;
	neighbours_join();
	/* It has not been told, and the GPU is not known. */
	assert_true(is_range(seen().own, 0, TPCSET_MAX - 1));
	have(range(4, 7));
	assert_true(is_range(seen().own, 4, 7));
	/* No more than the GPU has; and who has none of them is not restricted. */
	have(range(12, 30));
	assert_true(is_range(seen().own, 12, 15));
	have(range(16, 30));
	assert_true(is_range(seen().own, 0, 15));
	neighbours_have(&none);
	assert_true(is_range(seen().own, 0, 15));
	/* A partition that is not enforced. */
	have(range(4, 7));
	has_masks = false;
	assert_true(is_range(seen().own, 0, TPCSET_MAX - 1));
	has_gpus = false;
	assert_true(is_range(seen().own, 0, TPCSET_MAX - 1));
}

/* The others read which ones. */
static void test_own_tpcs_are_said(void **state)
{
	static struct board_claim claims[BOARD_PLACES];

	(void)state;
	neighbours_join();
	have(range(4, 7));
	look(NOW, true);
	pid_t reader = fork();

	if (reader == 0) {
		neighbours_after_fork();
		bool is_right = board_join(NULL) == 0 && board_read(gpus[0], NOW, claims) == 1 && is_range(claims[0].tpcs, 4, 7);
		_exit(is_right ? 0 : 1);
	}
	int status;

	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
}

static void test_sharing(void **state)
{
	struct process other = process_start(obey), third = process_start(obey);
	struct board_claim claim = {.pci = gpus[0], .priority = 60, .is_client = true,
	                            .wants = true, .wants_since = NOW - 5, .said = NOW};

	(void)state;
	self.is_client = true;
	neighbours_join();
	have(range(4, 7));
	claim.tpcs = range(8, 11);
	say(&other, claim);
	/* It is there; but beside this one, nobody has to give way. */
	assert_true(look(NOW, true).higher_wants);
	assert_false(is_known(seen().neighbours));
	assert_int_equal(seen().higher.words[0], 0);
	claim.tpcs = range(7, 11);
	say(&other, claim);
	assert_true(seen().neighbours.any && seen().neighbours.has_higher && seen().neighbours.higher_wants);
	assert_int_equal(seen().neighbours.higher_since, NOW - 5);
	assert_true(is_range(seen().higher, 7, 11));
	/* Of all that share one; not of those that are lower, or do not want to. */
	claim.tpcs = range(0, 4);
	say(&third, claim);
	assert_int_equal(seen().neighbours.higher_wanting, 2);
	assert_int_equal(seen().higher.words[0], 0xf9f);
	claim.priority = 50;
	say(&third, claim);
	assert_true(is_range(seen().higher, 7, 11));
	assert_int_equal(seen().neighbours.equals_wanting, 1);
	claim = (struct board_claim){.pci = gpus[0], .priority = 60, .is_client = true, .said = NOW, .tpcs = range(7, 11)};
	say(&other, claim);
	assert_true(seen().neighbours.has_higher && !seen().neighbours.higher_wants);
	assert_true(is_range(seen().own, 4, 7));
	assert_int_equal(seen().higher.words[0], 0);
	process_end(&other);
	process_end(&third);
}

/* Who is no client has the whole GPU, in turn with all clients. */
static void test_no_client_shares_all(void **state)
{
	struct process other = process_start(obey);

	(void)state;
	self.is_client = true;
	neighbours_join();
	have(range(4, 7));
	say(&other, (struct board_claim){.pci = gpus[0], .tpcs = range(8, 11), .priority = 60,
	                         .wants = true, .wants_since = NOW, .said = NOW});
	assert_true(seen().neighbours.higher_wants);
	assert_true(is_range(seen().higher, 0, TPCSET_MAX - 1));
	process_end(&other);
}

/* What was seen lasts until it leaves. */
static void test_nothing_seen(void **state)
{
	struct neighbours_on_gpu found;

	(void)state;
	assert_false(neighbours_seen(0, &found));
	neighbours_join();
	assert_false(neighbours_seen(0, &found));
	look_on(NOW, 2, true, true);
	assert_true(neighbours_seen(1, &found));
	assert_true(pci_address_equal(found.pci, gpus[1]));
	assert_false(neighbours_seen(2, &found));
	neighbours_leave();
	assert_false(neighbours_seen(0, &found));
}

/* On a GPU that it has left, it has no place; there is one for each that it is on. */
static void test_gpus_come_and_go(void **state)
{
	static struct board_claim claims[BOARD_PLACES];

	(void)state;
	neighbours_join();
	look_on(NOW, 2, true, true);
	for (int round = 0; round < 2; round++) {
		pid_t reader = fork();

		if (reader == 0) {
			board_after_fork();
			_exit(board_join(NULL) < 0 ? 9 : (int)board_read(gpus[1], NOW, claims));
		}
		int status;

		assert_int_equal(waitpid(reader, &status, 0), reader);
		assert_int_equal(WEXITSTATUS(status), round == 0 ? 1 : 0);
		look_on(NOW, 1, true, true);
	}
}

static void test_most_to_give_way_to(void **state)
{
	struct process first = process_start(obey), second = process_start(obey);

	(void)state;
	neighbours_join();
	say(&first, (struct board_claim){.pci = gpus[0], .priority = 60,
	                         .wants = true, .wants_since = NOW - 1, .said = NOW});
	say(&second, (struct board_claim){.pci = gpus[1], .priority = 60,
	                         .wants = true, .wants_since = NOW - 2, .said = NOW});
	assert_int_equal(look_on(NOW, 2, true, true).higher_since, NOW - 2);
	assert_int_equal(look_on(NOW, 2, false, false).higher_since, NOW - 2);
	/* There it works. */
	assert_int_equal(look_on(NOW, 2, true, false).higher_since, NOW - 1);
	assert_int_equal(look_on(NOW, 2, false, true).higher_since, NOW - 2);
	say(&second, (struct board_claim){.pci = gpus[1], .priority = 60, .said = NOW});
	assert_int_equal(look_on(NOW, 2, true, true).higher_since, NOW - 1);
	say(&first, (struct board_claim){.pci = gpus[0], .priority = 50,
	                         .wants = true, .wants_since = NOW, .said = NOW});
	assert_true(look_on(NOW, 2, true, true).has_higher);
	say(&second, (struct board_claim){.pci = gpus[1], .priority = 50,
	                         .wants = true, .wants_since = NOW, .served_ns = 1, .said = NOW});
	assert_int_equal(look_on(NOW, 2, true, true).least_served_ns, 0);
	process_end(&first);
	process_end(&second);
}

/* Two boards become one after 20 ms, 200 ms, a second, and then within ten. */
static void test_searches(void **state)
{
	const uint64_t moments[] = {20 * MS, 200 * MS, SECOND, 10 * SECOND, 20 * SECOND, 30 * SECOND};
	uint64_t now = NOW;

	(void)state;
	neighbours_join();
	look(now, true);
	for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
		int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		/* The program closes the descriptor: this is found by the next search, which then makes a new one. */
		close(memfd_next(directory, 0, BOARD_LINK));
		for (; now < NOW + moments[i]; now += 5 * MS) {
			look(now, true);
			assert_int_equal(memfd_next(directory, 0, BOARD_LINK), -1);
		}
		for (; memfd_next(directory, 0, BOARD_LINK) < 0; now += MS / 8) {
			look(now, true);
			assert_true(now < NOW + moments[i] + 100 * MS);
		}
		for (int part = 0; part < 100; part++)
			look(now, true);
		close(directory);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, leave)
	const struct CMUnitTest tests[] = {
		TEST(test_nobody),
		TEST(test_higher),
		TEST(test_equals_and_lower),
		TEST(test_own_claims),
		TEST(test_own_tpcs),
		TEST(test_own_tpcs_are_said),
		TEST(test_sharing),
		TEST(test_no_client_shares_all),
		TEST(test_nothing_seen),
		TEST(test_gpus_come_and_go),
		TEST(test_most_to_give_way_to),
		TEST(test_searches),
	};

	live_alone();
	return cmocka_run_group_tests(tests, setup, NULL);
}
