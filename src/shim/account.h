/*
 * Counts launches, and what happened to them, in this process's segment.
 *
 * Each thread counts its launches in a counter slot of its own, which it gives back when it ends. Threads for which
 * there is none share one slot.
 */
#ifndef NVTASKSET_SHIM_ACCOUNT_H
#define NVTASKSET_SHIM_ACCOUNT_H

#include "state/segment.h"

#include <stdbool.h>
#include <stddef.h>

/* From here on, counts go to this segment. Only while no thread launches: at the start, and in the child of a fork. */
void account_use(const struct segment *segment);

/* From here on, a thread that ends gives its slot back. Call it once, when it is certain that this library is not
 * unloaded. */
void account_follow_threads(void);

/* This thread's slot; NULL if it has none of its own. It belongs to account.c and is declared here for account_launch
 * alone. */
extern __thread struct counter_slot *account_slot __attribute__((tls_model("initial-exec"), visibility("hidden")));
void account_launch_elsewhere(bool restricted);

static inline void account_launch(bool restricted)
{
	struct counter_slot *slot = account_slot;

	if (__builtin_expect(slot != NULL, 1))
		counter_slot_count_launch(slot, restricted);
	else
		account_launch_elsewhere(restricted);
}

void account_reason(enum segment_reason reason);

/* Counts a graph node that was uploaded again after a change. */
void account_refresh(void);

#endif
