/* Quotas, priorities, weights, lending and limits of memory, for partitions and groups alike: checked and
 * converted, for the command as for programs. */
#ifndef NVTASKSET_API_TIME_GIVEN_H
#define NVTASKSET_API_TIME_GIVEN_H

#include "api/internal.h"
#include "state/segment/memory.h"
#include "state/segment/segment.h"

/* Make `wanted` a change of one setting, and nothing else. -1 with the reason if out of range. */
int api_want_quota(struct segment_revision *wanted, uint32_t run_us, uint32_t period_us, struct error *error);
int api_want_priority(struct segment_revision *wanted, unsigned int priority, struct error *error);
int api_want_weight(struct segment_revision *wanted, unsigned int weight, struct error *error);
int api_want_lend(struct segment_revision *wanted, uint32_t limit_us, struct error *error);
int api_want_borrow(struct segment_revision *wanted, const struct nvtaskset_set *set, struct error *error);
int api_want_memory(struct segment_revision *wanted, uint64_t limit, struct error *error);

/* -1 with the reason if the process cannot have the settings `wanted`: a weight as a client of
 * MPS, or perhaps a client; lending or borrowing as any other program. */
int api_check_time(pid_t pid, const struct segment_revision *wanted, struct error *error);

/* Settings and results. Results of a group are not known: `time` and `borrowed` are all zero. */
struct api_given {
	struct segment_revision revision;
	struct segment_time time;
	struct segment_borrowed borrowed;
};

/* Fill public structs and text. -1 with the reason, as api_fill. */
int api_fill_quota(struct nvtaskset_quota *quota, const struct api_given *given, struct error *error);
int api_fill_rank(struct nvtaskset_rank *public, const struct api_given *given, struct error *error);
int api_fill_lending(struct nvtaskset_lending *public, const struct api_given *given, struct error *error);
int api_fill_memory(struct nvtaskset_memory *public, const struct segment_memory_use *use, struct error *error);

#endif
