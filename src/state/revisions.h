/*
 * A whole partition: the sets of all GPUs, and the settings of time and memory; and the ring of revisions in shared
 * memory.
 *
 * Readers and editors do not trust each other (state/segment/segment.h, state/group/group.h).
 */
#pragma once

#include "base/error.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "settings.h"

#define SEGMENT_GPUS TOPOLOGY_GPUS_MAX

/* The partition of a process on one GPU. */
struct segment_partition {
	struct pci_address pci;
	struct tpcset set; /* the logical TPCs for the process */
};

/* The part of the time in which a process may be present on its GPUs: at most `run_us` in each `period_us`. */
struct segment_quota {
	uint32_t run_us;    /* `period_us` or more: limit taken away */
	uint32_t period_us; /* 0: never given */
};

#define SEGMENT_QUOTA_PERIOD_MIN_US 1000
#define SEGMENT_QUOTA_PERIOD_MAX_US 10000000
#define SEGMENT_QUOTA_RUN_MIN_US 1000

/* The nearest number of a range. */
static inline uint32_t segment_within(uint32_t number, uint32_t least, uint32_t most)
{
	return number < least ? least : number > most ? most : number;
}

static inline bool segment_quota_limits(struct segment_quota quota)
{
	return quota.run_us < quota.period_us;
}

/* The quota within the ranges, for a quota of any writer. A quota without a limit stays unchanged. */
static inline struct segment_quota segment_quota_in_range(struct segment_quota quota)
{
	const struct segment_quota kept = {
		.run_us = segment_within(quota.run_us, SEGMENT_QUOTA_RUN_MIN_US, UINT32_MAX),
		.period_us = segment_within(quota.period_us, SEGMENT_QUOTA_PERIOD_MIN_US, SEGMENT_QUOTA_PERIOD_MAX_US),
	};

	return segment_quota_limits(quota) ? kept : quota;
}

/* The order of processes on a GPU, and the shares at the same priority. */
struct segment_rank {
	uint16_t priority; /* 1 + the priority (0 … SEGMENT_PRIORITY_MAX); 0: never given */
	uint16_t weight;   /* 1 … SEGMENT_WEIGHT_MAX; 0: never given */
	uint32_t unused;   /* earlier builds write a policy here */
};

#define SEGMENT_PRIORITY_MAX 99
#define SEGMENT_PRIORITY_USUAL 50 /* of programs without a priority */
#define SEGMENT_WEIGHT_MAX 10000
#define SEGMENT_WEIGHT_USUAL 100  /* of programs without a weight */

/* Whether the process has a place in the order of processes. */
static inline bool segment_rank_is_given(struct segment_rank rank)
{
	return rank.priority > 0 || rank.weight > 0;
}

static inline uint16_t segment_rank_of_priority(unsigned int priority)
{
	return (uint16_t)(1 + priority);
}

/* Both are in range, for a rank of any writer. */
static inline uint32_t segment_rank_priority(struct segment_rank rank)
{
	return segment_within(rank.priority > 0 ? rank.priority - 1u : SEGMENT_PRIORITY_USUAL, 0, SEGMENT_PRIORITY_MAX);
}

static inline uint32_t segment_rank_weight(struct segment_rank rank)
{
	return segment_within(rank.weight > 0 ? rank.weight : SEGMENT_WEIGHT_USUAL, 1, SEGMENT_WEIGHT_MAX);
}

/* Lending under MPS: the process lends idle TPCs, and borrows idle TPCs of other processes (time/rules/lending.h). */
struct segment_lending {
	uint32_t lend_us; /* the longest wait for lent TPCs; SEGMENT_LEND_OFF: taken away; 0: never given */
	uint32_t borrows; /* enum segment_borrowing */
	struct tpcset borrow; /* the TPCs of each GPU that may be borrowed */
};

#define SEGMENT_LEND_OFF UINT32_MAX
#define SEGMENT_LEND_MIN_US 100
#define SEGMENT_LEND_MAX_US 1000000
#define SEGMENT_LEND_USUAL_US 2000

enum segment_borrowing {
	SEGMENT_BORROW_NONE, /* never given */
	SEGMENT_BORROW_OFF,  /* taken away */
	SEGMENT_BORROW_SET
};

static const struct tpcset segment_borrow_all = {{[0 ... TPCSET_WORDS - 1] = UINT64_MAX}};

/* In range, for a value of any writer; 0: lends nothing. */
static inline uint32_t segment_lends_us(const struct segment_lending *lending)
{
	bool lends = lending->lend_us != 0 && lending->lend_us != SEGMENT_LEND_OFF;

	return lends ? segment_within(lending->lend_us, SEGMENT_LEND_MIN_US, SEGMENT_LEND_MAX_US) : 0;
}

static inline bool segment_borrows(const struct segment_lending *lending)
{
	return lending->borrows == SEGMENT_BORROW_SET;
}

/* A whole partition: at most one entry for a GPU. A GPU without an entry is not restricted. */
struct segment_revision {
	uint32_t count; /* 0 … SEGMENT_GPUS */
	uint32_t group; /* the lower half of the group's number at that time; 0 without a group (group/group.h) */
	struct segment_quota quota; /* on all GPUs together */
	struct segment_rank rank;   /* on each GPU */
	struct segment_lending lending;
	uint64_t memory; /* at most, in bytes of each GPU; SEGMENT_MEMORY_OFF: limit taken away; 0: never given */
	struct segment_partition partitions[SEGMENT_GPUS];
};

#define SEGMENT_MEMORY_OFF UINT64_MAX

static inline uint64_t segment_memory_limit(const struct segment_revision *revision)
{
	return revision->memory > 0 ? revision->memory : SEGMENT_MEMORY_OFF;
}

static inline bool segment_memory_is_limited(const struct segment_revision *revision)
{
	return segment_memory_limit(revision) != SEGMENT_MEMORY_OFF;
}

/* Whether the setting is given; whether any setting before `end` is given. SETTING_MEMORY as `end` asks for settings of
 * time, SETTING_COUNT for any setting. */
bool revision_gives(const struct segment_revision *revision, enum setting setting);
bool revision_gives_any(const struct segment_revision *revision, enum setting end);

static inline bool segment_shares(const struct segment_revision *revision)
{
	return segment_lends_us(&revision->lending) > 0 || segment_borrows(&revision->lending);
}

/* Whether a setting may make a process wait for the GPU. */
static inline bool segment_time_limits(const struct segment_revision *revision)
{
	return segment_quota_limits(revision->quota) || segment_rank_is_given(revision->rank) ||
	       segment_shares(revision);
}

/* Whether a setting may hold back the launches of a client of MPS. */
static inline bool segment_time_holds_back(const struct segment_revision *revision)
{
	return segment_quota_limits(revision->quota) || revision->rank.priority > 0;
}

/* The partition on a GPU; NULL if the revision does not restrict the GPU. */
const struct segment_partition *revision_find_partition(const struct segment_revision *revision,
                                                        struct pci_address pci);

/* Puts a partition into the revision, in place of a partition on the same GPU; partitions on other GPUs stay. -1 with
 * the reason if there is no room for a further GPU. */
int revision_put(struct segment_revision *revision, const struct segment_partition *partition, struct error *error);

/* Puts the given settings of `wanted` into the revision; the rest stays. */
void revision_put_settings(struct segment_revision *revision, const struct segment_revision *wanted);

/* Puts all partitions and settings of `other` into the revision that the revision lacks. */
void revision_put_missing(struct segment_revision *revision, const struct segment_revision *other);

/* Puts all partitions and settings of `wanted` into the revision. -1 with the reason, as revision_put. */
int revision_put_all(struct segment_revision *revision, const struct segment_revision *wanted, struct error *error);

/* Takes `given` out: an unchanged part of `given` becomes the part of `before`. Returns whether anything changed. */
bool revision_put_back(struct segment_revision *revision, const struct segment_revision *given,
                       const struct segment_revision *before);

#define REVISIONS_RING 8
#define REVISIONS_WORDS (sizeof(struct segment_revision) / sizeof(uint64_t))

/* A ring in shared memory, without the number of the revision in force. */
typedef _Atomic uint64_t revisions_ring[REVISIONS_RING][REVISIONS_WORDS];

/* Writes a revision into the ring; the revision is in force once the number is raised. */
void revisions_store(revisions_ring ring, uint64_t number, const struct segment_revision *revision);

/* Copies the revision in force, and the number. Bounded work. False, with `revision` undefined, if editors overtook
 * each attempt to copy, or the copy is no revision: too many partitions, or two of one GPU. */
bool revisions_load(const revisions_ring ring, const _Atomic uint64_t *in_force, struct segment_revision *revision,
                    uint64_t *number);
