#include "stepping.h"

#include "base/ring.h"
#include "driver/gpus.h"
#include "epoch.h"

#include <stdatomic.h>
#include <string.h>

/* --- what is left to others, for all threads ------------------------------------------------------------------------ */

#define PLACES 4

/* Indexed by gpus_number: the TPCs that launches leave to others. Those in force stand at places[current % PLACES]. */
static struct left {
	_Atomic uint64_t current;
	_Atomic uint64_t places[PLACES][TPCSET_WORDS];
} lefts[GPUS_MAX];

static atomic_uint stepping_gpus; /* on so many, any are left to others */

static struct tpcset read_left(const struct left *left)
{
	struct tpcset set = {{0}};
	uint64_t seen;

	do {
		seen = atomic_load_explicit(&left->current, memory_order_acquire);
		ring_copy(set.words, left->places[seen % PLACES], TPCSET_WORDS);
	} while (__builtin_expect(!ring_is_whole(&left->current, seen, PLACES), 0));
	return set;
}

/* Our thread is the only writer. */
static void write_left(struct left *left, const struct tpcset *set)
{
	uint64_t next = atomic_load_explicit(&left->current, memory_order_relaxed) + 1;

	ring_fill(left->places[next % PLACES], set->words, TPCSET_WORDS);
	atomic_store_explicit(&left->current, next, memory_order_release);
}

struct tpcset stepping_left(const struct gpu *gpu)
{
	static const struct tpcset none;

	return atomic_load_explicit(&stepping_gpus, memory_order_acquire) > 0 ? read_left(&lefts[gpus_number(gpu)]) : none;
}

/* --- deciding ------------------------------------------------------------------------------------------------------- */

static void step_aside(const struct gpu *gpu, struct decision *decision)
{
	struct tpcset left = read_left(&lefts[gpus_number(gpu)]), rest = tpcset_without(&decision->set, &left);

	if (!tpcset_is_empty(&rest) && !tpcset_equal(&rest, &decision->set))
		decision_step_aside(decision, gpu->topology, &rest);
}

void stepping_decide(const struct launch *launch, struct decision *decision)
{
	if (atomic_load_explicit(&stepping_gpus, memory_order_acquire) > 0 && decision->state != DECISION_UNRESTRICTED)
		step_aside(launch->gpu, decision);
}

/* --- which TPCs ----------------------------------------------------------------------------------------------------- */

/* What higher ones want, and wanted a while ago. For our thread; indexed by gpus_number. */
static struct memory {
	struct tpcset wanted;       /* at the last look */
	struct tpcset left;         /* as it was published */
	uint64_t until[TPCSET_MAX]; /* those that nobody wants any more are kept for so long */
} memories[GPUS_MAX];

static bool has_memories;

static void see_wanted(struct memory *memory, const struct tpcset *wanted, uint64_t now)
{
	struct tpcset given_back = tpcset_without(&memory->wanted, wanted);

	for (unsigned int tpc = tpcset_next(&given_back, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&given_back, tpc + 1))
		memory->until[tpc] = now + STEPPING_NS;
	memory->wanted = *wanted;
	has_memories = true;
}

/* Those that are left to others although nobody wants them any more. What could not be left is not kept either. */
static struct tpcset find_kept(const struct memory *memory, uint64_t now)
{
	struct tpcset idle = tpcset_without(&memory->left, &memory->wanted), kept = {{0}};

	for (unsigned int tpc = tpcset_next(&idle, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&idle, tpc + 1)) {
		if (memory->until[tpc] > now)
			tpcset_add(&kept, tpc);
	}
	return kept;
}

/* None where that would be all. */
static struct tpcset unless_all(const struct tpcset *set, const struct tpcset *own)
{
	static const struct tpcset none;

	return tpcset_is_subset(own, set) ? none : tpcset_and(set, own);
}

/* Where those that are kept would make it all, only those that are wanted count. */
static struct tpcset find_left(const struct memory *memory, const struct tpcset *own, uint64_t now)
{
	struct tpcset kept = find_kept(memory, now), both = tpcset_or(&kept, &memory->wanted), left = unless_all(&both, own);

	return tpcset_is_empty(&left) ? unless_all(&memory->wanted, own) : left;
}

/* UINT64_MAX while all that are left are wanted. */
static uint64_t when_it_changes(const struct memory *memory)
{
	struct tpcset kept = tpcset_without(&memory->left, &memory->wanted);
	uint64_t soonest = UINT64_MAX;

	for (unsigned int tpc = tpcset_next(&kept, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&kept, tpc + 1)) {
		if (memory->until[tpc] < soonest)
			soonest = memory->until[tpc];
	}
	return soonest;
}

/* --- for our thread ------------------------------------------------------------------------------------------------- */

/* The epoch comes last: who sees it sees the set. */
static void publish(unsigned int number, const struct tpcset *left)
{
	struct memory *memory = &memories[number];
	unsigned int before = !tpcset_is_empty(&memory->left), after = !tpcset_is_empty(left);

	if (!tpcset_equal(left, &memory->left)) {
		write_left(&lefts[number], left);
		atomic_fetch_add(&stepping_gpus, after - before);
		memory->left = *left;
		epoch_raise_stepping();
	}
}

struct stepping stepping_see(const struct peers_on_gpu *neighbours, uint64_t now)
{
	const struct gpu *gpu = gpus_at(neighbours->pci);
	struct stepping stepping = {.rest = neighbours->own, .next = UINT64_MAX};

	if (gpu && gpus_have_masks(gpu)) {
		struct memory *memory = &memories[gpus_number(gpu)];

		see_wanted(memory, &neighbours->higher, now);
		struct tpcset left = find_left(memory, &neighbours->own, now);

		publish(gpus_number(gpu), &left);
		stepping.next = when_it_changes(memory);
		stepping.is_aside = !tpcset_is_empty(&left);
		stepping.rest = tpcset_without(&neighbours->own, &left);
	}
	return stepping;
}

static void forget(void)
{
	if (has_memories)
		memset(memories, 0, sizeof memories);
	has_memories = false;
}

void stepping_end(void)
{
	static const struct tpcset none;

	for (unsigned int number = 0; number < GPUS_MAX && has_memories; number++)
		publish(number, &none);
	forget();
}

/* Our thread may have been in the middle of publishing. */
void stepping_after_fork(void)
{
	if (has_memories) {
		memset(lefts, 0, sizeof lefts);
		atomic_store(&stepping_gpus, 0);
		epoch_raise_stepping();
	}
	forget();
}
