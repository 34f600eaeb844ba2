/* What partitions and groups alike are given of the time: quotas, priorities and weights, checked and converted. */
#ifndef NVTASKSET_API_TIME_GIVEN_H
#define NVTASKSET_API_TIME_GIVEN_H

#include "api/internal.h"
#include "state/segment.h"

/* Make `wanted` a change that gives this, and nothing else. -1 with the reason if it is out of range. */
int api_want_quota(struct segment_revision *wanted, uint32_t run_us, uint32_t period_us, struct error *error);
int api_want_priority(struct segment_revision *wanted, unsigned int priority, struct error *error);
int api_want_weight(struct segment_revision *wanted, unsigned int weight, struct error *error);

/* Fill public structs from what was given and what became of it; a group has no such `time`, and passes NULL. -1 with the
 * reason, as api_fill. */
int api_fill_quota(struct nvtaskset_quota *quota, const struct segment_revision *revision, const struct segment_time *time,
                   struct error *error);
int api_fill_rank(struct nvtaskset_rank *rank, const struct segment_revision *revision, const struct segment_time *time,
                  struct error *error);

#endif
