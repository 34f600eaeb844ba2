/*
 * Counts launches, and what happened to them: in this process's segment how many the partition restricted, and in the
 * place of their context (state/kernels/counts.h) how many there were. There the GPU counts how many have ended.
 *
 * Each thread counts its launches in a counter slot of its own, which it gives back when it ends. Threads for which
 * there is none share one slot.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_ACCOUNT_H
#define NVTASKSET_LAUNCH_ACCOUNT_ACCOUNT_H

#include "driver/releases.h"
#include "gpu/qmd.h"
#include "state/kernels/counts.h"
#include "state/segment/segment.h"

#include <stdbool.h>
#include <stddef.h>

/* "off": what ran is not counted, and no release slot is used. */
#define ACCOUNT_ENVIRONMENT "NVTASKSET_ACCOUNT"

/* Reads the environment. Call it before account_use, and before another thread can change that. */
void account_open(void);

/* From here on, counts go to this segment. Only while no thread launches: at the start, and in the child of a fork. */
void account_use(const struct segment *segment);

/* In the child of a fork that shares its parent's segment: what ran is not counted any more. Raise the epoch after it. */
void account_stop(void);

/* From here on, a thread that ends gives its slot back. Call it once, when it is certain that this library is not
 * unloaded. */
void account_follow_threads(void);

/* Where this thread counts. It belongs to account.c and is declared here for account_launch alone. */
struct account_own {
	struct counter_slot *slot;  /* NULL if it has none of its own */
	_Atomic uint64_t *launched; /* in the place of the context that it launches on; valid if there is a slot */
};
extern __thread struct account_own account_own __attribute__((tls_model("initial-exec"), visibility("hidden")));
void account_launch_elsewhere(const struct releases *releases, bool restricted);

/* Counts a kernel that is launched now, on the same context as this thread's last one. */
static inline void account_launch(const struct releases *releases, bool restricted)
{
	if (__builtin_expect(account_own.slot != NULL, 1)) {
		counter_slot_count_launch(account_own.slot, restricted);
		counts_launch(account_own.launched);
	} else {
		account_launch_elsewhere(releases, restricted);
	}
}

/* The same on another context, or after a change. */
void account_launch_anew(const struct releases *releases, bool restricted);

/* Counts a node of a graph that is uploaded: how often it is launched is another question (launch/graphs/counts.h). */
void account_node(const struct releases *releases, bool restricted);

/* A kernel is not counted when it ends, since its release was not written: of a launch, and of a node. */
void account_uncounted_launch(const struct releases *releases, enum qmd_release_outcome why);
void account_uncounted_node(const struct releases *releases, enum qmd_release_outcome why);

/* Nobody knows how often a node is launched. */
void account_node_gap(const struct releases *releases, enum counts_gap why);

/* A graph runs in this context of which we know nothing: it is older than we are, or there was no memory for it. A context
 * without a place is older. */
void account_unknown_graph(CUcontext context, enum counts_gap why);

void account_reason(enum segment_reason reason);
void account_reasons(uint32_t reasons); /* a bit for each */

/* Counts a graph node that was uploaded again after a change. */
void account_refresh(void);

#endif
