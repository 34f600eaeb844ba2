/* Which TPCs are left to others, and for how long: on the tests' clock, on GPUs of 16 TPCs. */
#include "../cases.h"
#include "driver/gpus.h"
#include "launch/space/epoch.h"
#include "launch/space/stepping.h"

#include <pthread.h>

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
	const struct peers_on_gpu neighbours = {
		.pci = gpus[gpu].pci,
		.own = mask(own),
		.higher = mask(higher),
		.rivals = {.any = higher != 0, .higher_wants = higher != 0},
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

FIXTURE(begin)
{
	static _Atomic uint64_t edits = 1, group_edits;

	for (uint16_t tpc = 0; tpc < TPCS; tpc++)
		topology.tpcs[tpc].mask_bit = tpc;
	epoch_sources.edits = &edits;
	epoch_sources.group_edits = &group_edits;
	has_masks = true;
}

FIXTURE(end)
{
	stepping_end();
}

/* --- the rule ----------------------------------------------------------------------------------------------------- */

TEST(what_is_left)
{
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

TEST(kept_for_a_while)
{
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

/* --- ends --------------------------------------------------------------------------------------------------------- */

TEST(fork)
{
	uint64_t epoch;

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
TEST(launches_meanwhile)
{
	atomic_bool wrong = false;
	pthread_t threads[2];

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

RUN_TESTS(begin, end)
