/*
 * The one number by which a launch sees that the world is as it was when the last one was decided.
 *
 * It is raised by all that can change what a launch is given: every edit of the partition, whoever makes it; a mask of the
 * program's own; a context that comes or goes, whose handle may be another's tomorrow; another segment, in the child of a
 * fork.
 *
 * Who raises it has written what it is raised for. Who decides by what has been written reads it first, and so decides
 * anew the next time, should that change meanwhile.
 */
#ifndef NVTASKSET_SHIM_EPOCH_H
#define NVTASKSET_SHIM_EPOCH_H

#include "state/segment.h"

#include <stdatomic.h>
#include <stdint.h>

#define EPOCH_NEVER UINT64_MAX /* no number that there will be */

/* epoch.c's own, here for the functions below alone. */
struct epoch_sources {
	_Atomic uint64_t *edits; /* the segment's: its number */
	_Atomic uint64_t others; /* in steps that edits, one at a time, do not catch up with: no sum comes twice */
	_Atomic uint64_t masks;
};
extern struct epoch_sources epoch_sources __attribute__((visibility("hidden")));

/* The edits are this segment's from here on. */
void epoch_use(const struct segment *segment);

static inline uint64_t epoch_now(void)
{
	return atomic_load_explicit(&epoch_sources.others, memory_order_acquire) +
	       atomic_load_explicit(epoch_sources.edits, memory_order_acquire);
}

void epoch_raise(void);

/* The same for masks of the program's own: what a kernel in a graph may use, too, is another now. */
void epoch_raise_masks(void);

/* What is uploaded once goes by this: raised by edits and masks alone. */
static inline uint64_t epoch_of_masks(void)
{
	return atomic_load_explicit(&epoch_sources.masks, memory_order_acquire) +
	       atomic_load_explicit(epoch_sources.edits, memory_order_acquire);
}

#endif
