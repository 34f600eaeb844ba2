/*
 * The epoch: one number. While it is the same, a cached decision about launches is valid.
 *
 * Everything that can change a decision raises it: each edit of the partition or of the group's, by anybody; a mask of the
 * program's own; a context that is created or destroyed, since its handle may be reused; a new segment, in the child of a
 * fork. What a launch may use for the moment only is not among it: the gate says that of each (time/gate/gate.h).
 *
 * A writer first writes the change and then raises the epoch. A decider first reads the epoch and then what it decides
 * from: after a change in between, the next launch is decided anew.
 */
#ifndef NVTASKSET_LAUNCH_SPACE_EPOCH_H
#define NVTASKSET_LAUNCH_SPACE_EPOCH_H

#include "state/segment/segment.h"

#include <stdatomic.h>
#include <stdint.h>

#define EPOCH_NEVER UINT64_MAX         /* the epoch never has this value, */
#define EPOCH_KEPT (UINT64_C(1) << 63) /* nor this bit */
#define EPOCH_STEP (UINT64_C(1) << 32)

/* Belongs to epoch.c, and is declared here for the functions below alone. */
struct epoch_sources {
	_Atomic uint64_t *edits;        /* the number of the segment's revision */
	const _Atomic uint64_t *group_edits;
	_Atomic uint64_t invalidations; /* in steps of 2^32, which edits do not catch up with: no sum comes twice */
	_Atomic uint64_t masks;         /* raised by epoch_raise_masks */
};
extern struct epoch_sources epoch_sources __attribute__((visibility("hidden")));

/* From here on, edits of this segment raise the epoch. */
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

/* The epoch of masks, for graphs: their nodes are uploaded once. Only edits and masks raise it, contexts do not. */
static inline uint64_t epoch_of_masks(void)
{
	return atomic_load_explicit(&epoch_sources.masks, memory_order_acquire) + epoch_of_edits();
}

#endif
