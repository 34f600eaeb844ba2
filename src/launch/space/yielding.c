#include "yielding.h"

#include "base/ring.h"
#include "driver/gpus.h"
#include "epoch.h"

#include <stdatomic.h>
#include <string.h>

/* By a GPU's number. Launches copy a set while our thread writes the next one, and may get some words of both: all of
 * these TPCs are of the partition, and the next launch is decided about anew. */
static _Atomic uint64_t parts[GPUS_MAX][TPCSET_WORDS];

static struct tpcset part_of(const struct gpu *gpu)
{
	struct tpcset part;

	ring_copy(part.words, parts[gpu->number], TPCSET_WORDS);
	return part; // cppcheck-suppress uninitvar
}

void yielding_set_part(const struct gpu *gpu, const struct tpcset *part)
{
	struct tpcset before = part_of(gpu);

	if (!tpcset_equal(&before, part)) {
		ring_fill(parts[gpu->number], part->words, TPCSET_WORDS);
		epoch_raise();
	}
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
