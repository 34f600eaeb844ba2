#include "yielding.h"

#include "base/ring.h"
#include "driver/gpus.h"
#include "epoch.h"

#include <stdatomic.h>
#include <string.h>

#define PLACES 4

/* By a GPU's number: sets that launches copy while a writer fills a different place. */
static struct {
	_Atomic uint64_t current;
	_Atomic uint64_t places[PLACES][TPCSET_WORDS];
} parts[GPUS_MAX];

/* A reader reads again after a writer has overtaken. */
static struct tpcset part_of(const struct gpu *gpu)
{
	struct tpcset part;
	uint64_t seen;

	do {
		seen = atomic_load_explicit(&parts[gpu->number].current, memory_order_acquire);
		ring_copy(part.words, parts[gpu->number].places[seen % PLACES], TPCSET_WORDS);
	} while (!ring_is_whole(&parts[gpu->number].current, seen, PLACES));
	return part; // cppcheck-suppress uninitvar
}

void yielding_leave(const struct gpu *gpu, const struct tpcset *part)
{
	struct tpcset before = part_of(gpu);
	uint64_t next = atomic_load(&parts[gpu->number].current) + 1;

	if (tpcset_equal(&before, part))
		return;
	ring_fill(parts[gpu->number].places[next % PLACES], part->words, TPCSET_WORDS);
	atomic_store_explicit(&parts[gpu->number].current, next, memory_order_release);
	epoch_raise();
}

/* To later deciders, borrowed TPCs are a part of the partition. */
void yielding_decide(const struct launch *launch, struct decision *decision)
{
	if (!launch->gpu->has_masks || decision->state == DECISION_UNRESTRICTED)
		return;
	struct tpcset tpcs = launch->frame.has_more ? launch->frame.more : part_of(launch->gpu);

	if (tpcset_is_empty(&tpcs) || tpcset_equal(&tpcs, &decision->set))
		return;
	if (tpcset_is_subset(&tpcs, &decision->set)) {
		decision_yield(decision, &tpcs);
	} else {
		decision_restrict(decision, &tpcs);
		decision->partition = tpcs;
	}
}

void yielding_after_fork(void)
{
	memset(parts, 0, sizeof parts);
}
