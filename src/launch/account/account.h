/*
 * Counts launches and their results: in this process's segment the launches that the partition restricted, and in the
 * place of the context (state/kernels/counts.h) all launches. There the GPU counts the ends.
 *
 * Each thread counts in a counter slot of its own, and gives the slot back at the end. Threads without one share a
 * slot.
 */
#pragma once

#include "driver/releases.h"
#include "gpu/qmd.h"
#include "state/kernels/counts.h"
#include "state/segment/segment.h"

/* "off": kernels are not counted, and no release slot is used. */
#define ACCOUNT_ENVIRONMENT "NVTASKSET_ACCOUNT"

/* Reads the environment: to be called before account_use, and before another thread can change it. */
void account_open(void);

/* From here on, counts go to the segment. Only while no thread launches: at the start, and in the child of a fork. */
void account_use(const struct segment *segment);

/* In the child of a fork that shares the parent's segment: no kernel is counted any more. Then call epoch_raise. */
void account_stop(void);

/* From here on, an ending thread gives its slot back. Call this once, when it is certain that the library stays. */
void account_follow_threads(void);

/* Where this thread counts. For account.c, and declared here for account_launch alone. */
struct account_own {
	struct counter_slot *slot;  /* NULL: no slot of the thread's own */
	_Atomic uint64_t *launched; /* in the place of the thread's context; valid with a slot */
};
extern __thread struct account_own account_own __attribute__((tls_model("initial-exec"), visibility("hidden")));
void account_launch_elsewhere(const struct releases *releases, bool restricted);

/* Counts a kernel launched now, on the context of this thread's last kernel. */
static inline void account_launch(const struct releases *releases, bool restricted)
{
	if (__builtin_expect(account_own.slot != NULL, 1)) {
		segment_slot_count_launch(account_own.slot, restricted);
		counts_launch(account_own.launched);
	} else {
		account_launch_elsewhere(releases, restricted);
	}
}

/* The same on another context, or after a change. */
void account_launch_anew(const struct releases *releases, bool restricted);

/* Counts the upload of a graph's node. Launches are counted elsewhere (launch/graphs/counts.h). */
void account_node(const struct releases *releases, bool restricted);

/* A kernel is not counted at the end, since the release was not written: of a launch, and of a node. */
void account_uncounted_launch(const struct releases *releases, enum qmd_release_outcome why);
void account_uncounted_node(const struct releases *releases, enum qmd_release_outcome why);

/* It is unknown how often a node is launched. */
void account_node_gap(const struct releases *releases, enum counts_gap why);

/* An unknown graph runs in the context: a graph older than the library, or unknown for lack of memory. Notes the gap in
 * the counts of the context; without counts, for all GPUs. */
void account_unknown_graph(CUcontext context, enum counts_gap why);

void account_reason(enum segment_reason reason);
void account_reasons(uint32_t reasons); /* a bit for each */

/* Counts a graph node that was uploaded again after a change. */
void account_refresh(void);
