#include "epoch.h"

struct epoch_sources epoch_sources;

/* The bits of cached decisions stay free. Only after 2^30 raises does an epoch come again. */
void epoch_raise(void)
{
	uint64_t now = atomic_load(&epoch_sources.invalidations);

	while (!atomic_compare_exchange_weak(&epoch_sources.invalidations, &now, (now + EPOCH_STEP) % EPOCH_OTHER))
		;
}

void epoch_raise_masks(void)
{
	atomic_fetch_add_explicit(&epoch_sources.masks, 1, memory_order_release);
	epoch_raise();
}

void epoch_use(const struct segment *segment)
{
	epoch_sources.edits = segment->number;
	epoch_sources.group_edits = segment->group_number;
	epoch_raise();
}
