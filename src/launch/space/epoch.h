/*
 * The epoch: one number. While it is the same, a cached decision about launches is valid.
 *
 * Everything that can change a decision raises the epoch: each edit of the partition or of the group's, by anybody; a
 * mask of the program's own; a created or destroyed context, since the handle may be reused; a new segment, in the
 * child of a fork. TPCs that a launch may use for the moment do not: the gate tells each launch (time/gate/gate.h).
 *
 * A writer first writes the change and then raises the epoch. A decider first reads the epoch and then its sources:
 * after a change in between, the next launch is decided anew.
 */
#pragma once

#include "state/segment/segment.h"

#include <stdatomic.h>

#define EPOCH_NEVER UINT64_MAX /* never the epoch */
/* Of a cached decision that holds within calls only, or within calls with another answer (launch/launch.h). */
#define EPOCH_KEPT (UINT64_C(1) << 63)
#define EPOCH_OTHER (UINT64_C(1) << 62)
#define EPOCH_STEP (UINT64_C(1) << 32)

/* Belongs to epoch.c, and is declared here for the functions below alone. */
struct epoch_sources {
	_Atomic uint64_t *edits;        /* the number of the segment's revision */
	const _Atomic uint64_t *group_edits;
	_Atomic uint64_t invalidations; /* in steps of 2^32, out of reach of edits: no sum comes twice */
	_Atomic uint64_t masks;         /* raised by epoch_raise_masks */
};
extern struct epoch_sources epoch_sources __attribute__((visibility("hidden")));

/* From here on, edits of the segment raise the epoch. */
void epoch_use(const struct segment *segment);

static inline uint64_t epoch_of_edits(void)
{
	return atomic_load_explicit(epoch_sources.edits, memory_order_acquire) +
	       atomic_load_explicit(epoch_sources.group_edits, memory_order_acquire);
}

static inline uint64_t epoch_now(void)
{
	return atomic_load_explicit(&epoch_sources.invalidations, memory_order_acquire) + epoch_of_edits();
}

void epoch_raise(void);

/* Also raises the epoch of masks: a change of the program's masks reaches kernels in graphs. */
void epoch_raise_masks(void);

/* The epoch of masks, for graphs: nodes are uploaded once. Raised by edits and masks, not by contexts. */
static inline uint64_t epoch_of_masks(void)
{
	return atomic_load_explicit(&epoch_sources.masks, memory_order_acquire) + epoch_of_edits();
}
