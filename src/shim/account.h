/*
 * Counting, in this process's segment: launches, and what happened to them.
 *
 * Launches are counted by each thread in a place of its own, which it gives back when it ends; all others count in one that
 * they share.
 */
#ifndef NVTASKSET_SHIM_ACCOUNT_H
#define NVTASKSET_SHIM_ACCOUNT_H

#include "state/segment.h"

#include <stdbool.h>
#include <stddef.h>

/* Counts there from here on. Not while launches are going on: at the start, and in the child of a fork. */
void account_use(const struct segment *segment);

/* From here on, a thread that ends gives its place back. Once, when this library stays for good. */
void account_follow_threads(void);

/* Where this thread counts, NULL where it has no place of its own: account.c's, here for account_launch alone. */
extern __thread struct segment_place *account_place __attribute__((tls_model("initial-exec"), visibility("hidden")));
void account_launch_elsewhere(bool restricted);

static inline void account_launch(bool restricted)
{
	struct segment_place *place = account_place;

	if (__builtin_expect(place != NULL, 1))
		segment_count_launch_alone(place, restricted);
	else
		account_launch_elsewhere(restricted);
}

void account_reason(enum segment_reason reason);

/* A node of a graph is uploaded again after a change. */
void account_refresh(void);

#endif
