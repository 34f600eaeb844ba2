#include "epoch.h"

struct epoch_sources epoch_sources;

void epoch_raise(void)
{
	atomic_fetch_add_explicit(&epoch_sources.invalidations, EPOCH_STEP, memory_order_release);
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
