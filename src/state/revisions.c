#include "revisions.h"

#include "base/ring.h"

#include <stddef.h>
#include <string.h>

/* How often a reader tries before it reports that editors overtook it. */
#define READ_ATTEMPTS 4

/* How many words a revision of so many partitions uses. Only these are copied, which makes edits quick. */
static size_t words_used(uint32_t count)
{
	size_t partitions = count < SEGMENT_GPUS ? count : SEGMENT_GPUS;

	return (offsetof(struct segment_revision, partitions) + partitions * sizeof(struct segment_partition)) /
	       sizeof(uint64_t);
}

void revisions_store(revisions_ring ring, uint64_t number, const struct segment_revision *revision)
{
	size_t used = words_used(revision->count);
	uint64_t words[REVISIONS_WORDS];

	memcpy(words, revision, used * sizeof words[0]);
	ring_fill(ring[number % REVISIONS_RING], words, used);
}

/* False if editors went round the ring while we copied. */
static bool load(const revisions_ring ring, const _Atomic uint64_t *in_force, uint64_t number,
                 struct segment_revision *revision)
{
	const _Atomic uint64_t *place = ring[number % REVISIONS_RING];
	uint64_t words[REVISIONS_WORDS] = {0};
	uint32_t count;

	ring_copy(words, place, 1);
	memcpy(&count, words, sizeof count);
	ring_copy(&words[1], &place[1], words_used(count) - 1);
	memcpy(revision, words, sizeof *revision);
	return ring_is_whole(in_force, number, REVISIONS_RING);
}

bool revisions_load(const revisions_ring ring, const _Atomic uint64_t *in_force, struct segment_revision *revision,
                    uint64_t *number)
{
	bool whole = false;

	for (int attempt = 0; !whole && attempt < READ_ATTEMPTS; attempt++) {
		*number = atomic_load_explicit(in_force, memory_order_acquire);
		whole = load(ring, in_force, *number, revision);
	}
	return whole && revision->count <= SEGMENT_GPUS;
}

const struct segment_partition *segment_find(const struct segment_revision *revision, struct pci_address pci)
{
	return pci_address_find(pci, revision->partitions, revision->count, sizeof revision->partitions[0]);
}

int segment_put(struct segment_revision *revision, const struct segment_partition *partition, struct error *error)
{
	const struct segment_partition *there = segment_find(revision, partition->pci);

	if (!there && revision->count >= SEGMENT_GPUS)
		return error_set_code(error, NVTASKSET_ERROR_NO_ROOM, "the partition already names %u GPUs, and no more fit",
		                      SEGMENT_GPUS);
	revision->partitions[there ? (uint32_t)(there - revision->partitions) : revision->count++] = *partition;
	return 0;
}

void segment_put_policy(struct segment_rank *rank, struct segment_rank wanted)
{
	if (wanted.scheduling > 0)
		rank->scheduling = wanted.scheduling;
	if (wanted.reservation > 0)
		rank->reservation = wanted.reservation;
}

void segment_put_time(struct segment_revision *revision, const struct segment_revision *wanted)
{
	if (wanted->quota.period_us > 0)
		revision->quota = wanted->quota;
	if (wanted->rank.priority > 0)
		revision->rank.priority = wanted->rank.priority;
	if (wanted->rank.weight > 0)
		revision->rank.weight = wanted->rank.weight;
	segment_put_policy(&revision->rank, wanted->rank);
	if (wanted->lending.lend_us > 0)
		revision->lending.lend_us = wanted->lending.lend_us;
	if (wanted->lending.borrows > 0) {
		revision->lending.borrows = wanted->lending.borrows;
		revision->lending.borrow = wanted->lending.borrow;
	}
}

int segment_put_all(struct segment_revision *revision, const struct segment_revision *wanted, struct error *error)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < wanted->count; i++)
		result = segment_put(revision, &wanted->partitions[i], error);
	segment_put_time(revision, wanted);
	return result;
}

void segment_put_missing(struct segment_revision *revision, const struct segment_revision *other)
{
	struct segment_revision own = *revision;

	segment_put_time(revision, other);
	segment_put_time(revision, &own);
	for (uint32_t i = 0; i < other->count; i++) {
		if (!segment_find(revision, other->partitions[i].pci))
			segment_put(revision, &other->partitions[i], NULL);
	}
}
