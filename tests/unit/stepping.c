/* Which TPCs are left to others, and for how long: on the tests' clock, on GPUs of 16 TPCs. */
#include "driver/gpus.h"
#include "shim/epoch.h"
#include "shim/stepping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define NOW (1000000 * MS)
#define TPCS 16

/* --- GPUs --------------------------------------------------------------------------------------------------------- */

static struct topology topology = {.tpc_count = TPCS};
static struct gpu gpus[] = {{.topology = &topology, .pci = {.bus = 0x3b}}, {.topology = &topology, .pci = {.bus = 0x86}}};
static bool has_masks;

const struct gpu *gpus_at(struct pci_address pci)
{
	const struct gpu *found = NULL;

	for (int i = 0; i < 2; i++)
		found = pci_address_equal(gpus[i].pci, pci) ? &gpus[i] : found;
	return found;
}

unsigned int gpus_number(const struct gpu *gpu)
{
	return (unsigned int)(gpu - gpus);
}

bool gpus_have_masks(const struct gpu *gpu)
{
	(void)gpu;
	return has_masks;
}

/* --- what others want, and what launches get ---------------------------------------------------------------------- */

static struct stepping stepping;

static struct tpcset mask(uint64_t bits)
{
	return (struct tpcset){{bits}};
}

static bool see_on(int gpu, uint64_t now, uint64_t own, uint64_t higher)
{
	const struct neighbours_on_gpu neighbours = {
		.pci = gpus[gpu].pci,
		.own = mask(own),
		.higher = mask(higher),
		.neighbours = {.any = higher != 0, .higher_wants = higher != 0},
	};

	stepping = stepping_see(&neighbours, now);
	return stepping.is_aside;
}

static bool see(uint64_t now, uint64_t own, uint64_t higher)
{
	return see_on(0, now, own, higher);
}

/* Of a launch that would get these TPCs. */
static struct decision decide_on(int gpu, enum decision_state state, uint64_t own)
{
	struct launch launch = {.gpu = &gpus[gpu]};
	struct decision decision = {.state = state, .set = mask(own), .partition = mask(own)};

	stepping_decide(&launch, &decision);
	return decision;
}

/* As a mask. */
static uint64_t gets(uint64_t own)
{
	struct decision decision = decide_on(0, DECISION_RESTRICTED, own);

	if (decision.set.words[0] != own) {
		assert_true(decision.is_aside);
		assert_int_equal(decision.full.words[0], own);
		assert_int_equal(decision.disable.words[0], ~decision.set.words[0]);
	} else {
		assert_false(decision.is_aside);
	}
	assert_int_equal(decision.partition.words[0], own);
	return decision.set.words[0];
}

static int begin(void **state)
{
	static _Atomic uint64_t edits = 1, group_edits;

	(void)state;
	for (uint16_t tpc = 0; tpc < TPCS; tpc++)
		topology.tpcs[tpc].mask_bit = tpc;
	epoch_sources.edits = &edits;
	epoch_sources.group_edits = &group_edits;
	has_masks = true;
	return 0;
}

static int end(void **state)
{
	(void)state;
	stepping_end();
	return 0;
}

/* --- the rule ----------------------------------------------------------------------------------------------------- */

static void test_nobody(void **state)
{
	(void)state;
	assert_int_equal(gets(0xff), 0xff);
	assert_false(see(NOW, 0xff, 0));
	assert_true(stepping.next == UINT64_MAX);
	assert_int_equal(gets(0xff), 0xff);
}

static void test_what_is_left(void **state)
{
	(void)state;
	assert_true(see(NOW, 0xff, 0xf0f0));
	assert_int_equal(gets(0xff), 0x0f);
	assert_int_equal(stepping.rest.words[0], 0x0f);
	/* While it wants, nothing changes by itself. */
	assert_true(stepping.next == UINT64_MAX);
	assert_true(see(NOW + 1000 * MS, 0xff, 0xf0f0));
	assert_int_equal(gets(0xff), 0x0f);
	/* It wants others. */
	assert_true(see(NOW + 1000 * MS, 0xff, 0xf0ff ^ 0x03));
	assert_int_equal(gets(0xff), 0x03);
}

static void test_kept_for_a_while(void **state)
{
	(void)state;
	assert_true(see(NOW, 0xff, 0xf0));
	assert_true(see(NOW + 5 * MS, 0xff, 0));
	assert_int_equal(stepping.next, NOW + 5 * MS + STEPPING_NS);
	assert_int_equal(gets(0xff), 0x0f);
	assert_true(see(NOW + 104 * MS, 0xff, 0));
	assert_int_equal(stepping.next, NOW + 105 * MS);
	assert_int_equal(gets(0xff), 0x0f);
	assert_false(see(NOW + 105 * MS, 0xff, 0));
	assert_true(stepping.next == UINT64_MAX);
	assert_int_equal(gets(0xff), 0xff);
	/* Again, and once more before that time is over. */
	assert_true(see(NOW + 200 * MS, 0xff, 0xf0));
	assert_true(see(NOW + 210 * MS, 0xff, 0));
	assert_true(see(NOW + 300 * MS, 0xff, 0xf0));
	assert_true(see(NOW + 320 * MS, 0xff, 0));
	assert_int_equal(stepping.next, NOW + 420 * MS);
	assert_true(see(NOW + 419 * MS, 0xff, 0));
	assert_false(see(NOW + 420 * MS, 0xff, 0));
}

/* Each TPC is kept since it was wanted last. */
static void test_several(void **state)
{
	(void)state;
	assert_true(see(NOW, 0xff, 0x30));
	assert_true(see(NOW + 10 * MS, 0xff, 0x01));
	assert_int_equal(gets(0xff), 0xce);
	assert_int_equal(stepping.next, NOW + 110 * MS);
	assert_true(see(NOW + 50 * MS, 0xff, 0));
	assert_int_equal(stepping.next, NOW + 110 * MS);
	assert_true(see(NOW + 110 * MS, 0xff, 0));
	assert_int_equal(gets(0xff), 0xfe);
	assert_int_equal(stepping.next, NOW + 150 * MS);
	assert_false(see(NOW + 150 * MS, 0xff, 0));
}

static void test_nothing_is_left(void **state)
{
	(void)state;
	assert_false(see(NOW, 0x0f, 0xff));
	assert_int_equal(stepping.rest.words[0], 0x0f);
	assert_int_equal(gets(0x0f), 0x0f);
	/* Then something is. */
	assert_true(see(NOW, 0x0f, 0x07));
	assert_int_equal(gets(0x0f), 0x08);
	/* Those that were wanted a while ago count only where that leaves something. */
	assert_true(see(NOW + 10 * MS, 0x0f, 0x08));
	assert_int_equal(gets(0x0f), 0x07);
	assert_true(stepping.next == UINT64_MAX);
	assert_false(see(NOW + 20 * MS, 0x0f, 0x0f));
	assert_int_equal(gets(0x0f), 0x0f);
	/* Nobody wants any: there is nobody to step aside for, now or later. */
	for (uint64_t now = NOW + 20 * MS; now < NOW + 200 * MS; now += 5 * MS)
		assert_false(see(now, 0x0f, 0));
	assert_int_equal(gets(0x0f), 0x0f);
}

/* What could not be left to others is not left to them when nobody wants it any more. */
static void test_what_could_not_be_left(void **state)
{
	(void)state;
	assert_false(see(NOW, 0x03, 0x03));
	assert_false(see(NOW + 10 * MS, 0x0c, 0x0c));
	for (uint64_t now = NOW + 30 * MS; now < NOW + 200 * MS; now += 10 * MS)
		assert_false(see(now, 0x0f, 0));
	/* The first ones are dropped for the second, and do not come again. */
	assert_true(see(NOW + 300 * MS, 0x0f, 0x07));
	assert_true(see(NOW + 310 * MS, 0x0f, 0x08));
	assert_true(see(NOW + 320 * MS, 0x0f, 0));
	assert_int_equal(gets(0x0f), 0x07);
	assert_int_equal(stepping.next, NOW + 420 * MS);
	assert_true(see(NOW + 419 * MS, 0x0f, 0));
	assert_int_equal(gets(0x0f), 0x07);
	assert_false(see(NOW + 420 * MS, 0x0f, 0));
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static void test_whole_gpu(void **state)
{
	struct decision decision;

	(void)state;
	assert_true(see(NOW, 0xffff, 0xff));
	decision = decide_on(0, DECISION_WHOLE_GPU, 0xffff);
	assert_int_equal(decision.state, DECISION_RESTRICTED);
	assert_int_equal(decision.set.words[0], 0xff00);
	assert_int_equal(decision.disable.words[0], ~UINT64_C(0xff00));
	assert_int_equal(decision.disable.words[1], UINT64_MAX);
	/* It cannot step aside: its descriptor stays as it is. */
	decision_stay(&decision, &topology);
	assert_int_equal(decision.state, DECISION_WHOLE_GPU);
	assert_false(decision.is_aside);
	assert_int_equal(decision.set.words[0], 0xffff);
	/* The same with a partition. */
	decision = decide_on(0, DECISION_RESTRICTED, 0xfff);
	decision_stay(&decision, &topology);
	assert_int_equal(decision.state, DECISION_RESTRICTED);
	assert_int_equal(decision.disable.words[0], ~UINT64_C(0xfff));
	/* What is not in force cannot step aside. */
	decision = decide_on(0, DECISION_UNRESTRICTED, 0xfff);
	assert_int_equal(decision.state, DECISION_UNRESTRICTED);
	assert_false(decision.is_aside);
}

static void test_gpus(void **state)
{
	const struct neighbours_on_gpu unknown = {.pci = {.bus = 1}, .own = mask(0xff), .higher = mask(0x0f)};

	(void)state;
	assert_true(see_on(0, NOW, 0xff, 0x0f));
	assert_false(see_on(1, NOW, 0xff, 0));
	assert_int_equal(gets(0xff), 0xf0);
	assert_int_equal(decide_on(1, DECISION_RESTRICTED, 0xff).set.words[0], 0xff);
	assert_true(see_on(1, NOW, 0xff, 0x03));
	assert_int_equal(decide_on(1, DECISION_RESTRICTED, 0xff).set.words[0], 0xfc);
	assert_int_equal(gets(0xff), 0xf0);
	assert_false(see_on(0, NOW + MS + STEPPING_NS, 0xf0, 0));
	assert_int_equal(decide_on(1, DECISION_RESTRICTED, 0xff).set.words[0], 0xfc);
	stepping = stepping_see(&unknown, NOW);
	assert_false(stepping.is_aside);
	assert_int_equal(stepping.rest.words[0], 0xff);
	has_masks = false;
	assert_false(see_on(0, NOW, 0xff, 0x0f));
	assert_int_equal(gets(0xff), 0xff);
	has_masks = true;
}

/* The partition was changed, and our thread has not seen it yet. */
static void test_another_partition(void **state)
{
	(void)state;
	assert_true(see(NOW, 0xff, 0x3c));
	assert_int_equal(gets(0xff00), 0xff00);
	assert_int_equal(gets(0x3c), 0x3c);
	assert_int_equal(gets(0x33), 0x03);
	assert_int_equal(gets(0xff), 0xc3);
	assert_false(see(NOW, 0x0c00, 0x3c));
	assert_int_equal(gets(0x0c00), 0x0c00);
}

/* --- the epoch ---------------------------------------------------------------------------------------------------- */

static void test_epoch(void **state)
{
	uint64_t epoch = epoch_now(), of_masks = epoch_of_masks();

	(void)state;
	see(NOW, 0xff, 0);
	see(NOW, 0xff, 0xff00);
	see(NOW, 0x0f, 0x0f);
	stepping_end();
	assert_true(epoch_now() == epoch && epoch_of_masks() == of_masks);
	see(NOW, 0xff, 0x0f);
	assert_true(epoch_now() > epoch && epoch_of_masks() > of_masks);
	/* It is no edit, and no mask of the program's own. */
	assert_true(epoch_without_stepping(epoch_of_masks()) == epoch_without_stepping(of_masks));
	epoch = epoch_now();
	see(NOW, 0xff, 0x30f);
	see(NOW + MS, 0xff, 0x0f);
	see(NOW + 2 * MS, 0xff, 0);
	assert_true(epoch_now() == epoch);
	of_masks = epoch_of_masks();
	stepping_end();
	assert_true(epoch_now() > epoch && epoch_of_masks() > of_masks);
	epoch = epoch_now();
	stepping_end();
	assert_true(epoch_now() == epoch);
	epoch_raise_masks();
	assert_true(epoch_without_stepping(epoch_of_masks()) != epoch_without_stepping(of_masks));
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

static void test_end(void **state)
{
	(void)state;
	see(NOW, 0xff, 0x0f);
	stepping_end();
	assert_int_equal(gets(0xff), 0xff);
	/* Nothing is remembered. */
	assert_false(see(NOW + MS, 0xff, 0));
	assert_true(stepping.next == UINT64_MAX);
	assert_true(see(NOW + MS, 0xff, 0x30));
	assert_int_equal(gets(0xff), 0xcf);
}

static void test_fork(void **state)
{
	uint64_t epoch;

	(void)state;
	see(NOW, 0xff, 0x0f);
	epoch = epoch_now();
	stepping_after_fork();
	assert_true(epoch_now() > epoch);
	assert_int_equal(gets(0xff), 0xff);
	assert_true(see(NOW, 0xff, 0x0f));
	assert_int_equal(gets(0xff), 0xf0);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static atomic_bool has_ended;

static void *launch_again_and_again(void *wrong)
{
	while (!atomic_load(&has_ended)) {
		uint64_t set = decide_on(0, DECISION_RESTRICTED, 0xff).set.words[0];

		if (set != 0xff && set != 0xf0 && set != 0x0f)
			atomic_store((atomic_bool *)wrong, true);
	}
	return NULL;
}

/* No launch gets a set that never was. */
static void test_launches_meanwhile(void **state)
{
	atomic_bool wrong = false;
	pthread_t threads[2];

	(void)state;
	atomic_store(&has_ended, false);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_again_and_again, &wrong), 0);
	for (int i = 0; i < 20000; i++) {
		uint64_t now = NOW + (uint64_t)i * 3 * STEPPING_NS;

		see(now, 0xff, 0x0f);
		see(now + STEPPING_NS, 0xff, 0);
		see(now + 2 * STEPPING_NS, 0xff, 0xf0);
		see(now + 2 * STEPPING_NS, 0xff, 0);
	}
	atomic_store(&has_ended, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_false(atomic_load(&wrong));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_nobody),
		TEST(test_what_is_left),
		TEST(test_kept_for_a_while),
		TEST(test_several),
		TEST(test_nothing_is_left),
		TEST(test_what_could_not_be_left),
		TEST(test_whole_gpu),
		TEST(test_gpus),
		TEST(test_another_partition),
		TEST(test_epoch),
		TEST(test_end),
		TEST(test_fork),
		TEST(test_launches_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
