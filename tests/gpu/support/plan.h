/*
 * Partitions that change all the time, by a plan: the contents of a revision of the segment follow from its number, without
 * the times that a watcher raised it (state/segment/lease.h). So the revisions that were in force during a launch say where
 * it may have run, and no history is needed.
 *
 * Every editor must follow the plan.
 */
#ifndef TESTS_PLAN_H
#define TESTS_PLAN_H

#include "state/segment/segment.h"

#define PLAN_GPUS 2

struct plan {
	unsigned int gpu_count; /* 1 … PLAN_GPUS: they are changed in turn */
	struct topology gpus[PLAN_GPUS];
	uint64_t start; /* the last revision before the plan; in it, all GPUs are whole */
};

/* The partition on a GPU in revision `number`. Never empty. */
struct tpcset plan_set(const struct plan *plan, unsigned int gpu, uint64_t number);

/* The number of the revision in force: of none that is later, and of none that is earlier. */
uint64_t plan_first(const struct segment *segment);
uint64_t plan_last(const struct segment *segment);

/* Whether the revision in force holds what the plan says. */
bool plan_is_kept(const struct plan *plan, const struct segment *segment);

/* Puts the next revision in force. -1 with the reason of segment_change. */
int plan_edit(const struct plan *plan, struct segment *segment, struct error *error);

/* The next number of a random sequence. */
uint64_t plan_random(uint64_t *state);

#endif
