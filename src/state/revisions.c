#include "revisions.h"

#include "base/ring.h"

#include <string.h>

/* Attempts of a reader before reporting that editors overtook the reader. */
#define READ_ATTEMPTS 4

/* The number of words in use in a revision with `count` partitions. Only these are copied: edits are quick. */
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

/* False if editors went round the ring during the copy. */
static bool copy_revision(const revisions_ring ring, const _Atomic uint64_t *in_force, uint64_t number,
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

/* A GPU with two partitions would give a program two rows, and a metric two samples with the same labels. */
static bool is_revision(const struct segment_revision *revision)
{
	bool is_one = revision->count <= SEGMENT_GPUS;

	for (uint32_t i = 1; is_one && i < revision->count; i++) {
		const struct segment_partition *partition = &revision->partitions[i];

		is_one = revision_find_partition(revision, partition->pci) == partition;
	}
	return is_one;
}

bool revisions_load(const revisions_ring ring, const _Atomic uint64_t *in_force, struct segment_revision *revision,
                    uint64_t *number)
{
	bool whole = false;

	for (int attempt = 0; !whole && attempt < READ_ATTEMPTS; attempt++) {
		*number = atomic_load_explicit(in_force, memory_order_acquire);
		whole = copy_revision(ring, in_force, *number, revision);
	}
	return whole && is_revision(revision);
}

const struct segment_partition *revision_find_partition(const struct segment_revision *revision, struct pci_address pci)
{
	return pci_address_find(pci, revision->partitions, revision->count, sizeof revision->partitions[0]);
}

int revision_put(struct segment_revision *revision, const struct segment_partition *partition, struct error *error)
{
	const struct segment_partition *there = revision_find_partition(revision, partition->pci);

	if (!there && revision->count >= SEGMENT_GPUS)
		return error_set_code(error, NVTASKSET_ERROR_NO_ROOM,
		                      "the partition already names %u GPUs, and no more fit", SEGMENT_GPUS);
	revision->partitions[there ? (uint32_t)(there - revision->partitions) : revision->count++] = *partition;
	return 0;
}

/* The settings in a revision; zeros are not given. */
static const struct part {
	size_t at, size;
} parts[SETTING_COUNT] = {
#define AT(member) offsetof(struct segment_revision, member)
#define PART(identifier, name, kind, member, behind, ...) {AT(member), AT(behind) - AT(member)},
	SETTINGS(PART)
};

bool revision_gives(const struct segment_revision *revision, enum setting setting)
{
	static const char zeros[sizeof(struct segment_lending)];

	return memcmp((const char *)revision + parts[setting].at, zeros, parts[setting].size) != 0;
}

bool revision_gives_any(const struct segment_revision *revision, enum setting end)
{
	bool gives = false;

	for (enum setting setting = 0; setting < end; setting++)
		gives = gives || revision_gives(revision, setting);
	return gives;
}

static bool is_same(const struct part *part, const struct segment_revision *a, const struct segment_revision *b)
{
	return memcmp((const char *)a + part->at, (const char *)b + part->at, part->size) == 0;
}

static void copy(const struct part *part, struct segment_revision *to, const struct segment_revision *from)
{
	memcpy((char *)to + part->at, (const char *)from + part->at, part->size);
}

void revision_put_settings(struct segment_revision *revision, const struct segment_revision *wanted)
{
	for (enum setting setting = 0; setting < SETTING_COUNT; setting++) {
		if (revision_gives(wanted, setting))
			copy(&parts[setting], revision, wanted);
	}
}

/* If the partition on the GPU is `given`, the partition of `before` returns, or none. */
static bool put_back_partition(struct segment_revision *revision, const struct segment_partition *given,
                               const struct segment_revision *before)
{
	const struct segment_partition *there = revision_find_partition(revision, given->pci);
	const struct segment_partition *old = revision_find_partition(before, given->pci);
	bool is_ours = there && tpcset_equal(&there->set, &given->set);

	if (is_ours && old)
		revision_put(revision, old, NULL);
	else if (is_ours)
		revision->partitions[there - revision->partitions] = revision->partitions[--revision->count];
	return is_ours && (!old || !tpcset_equal(&old->set, &given->set));
}

bool revision_put_back(struct segment_revision *revision, const struct segment_revision *given,
                       const struct segment_revision *before)
{
	bool has_changed = false;

	for (uint32_t i = 0; i < given->count; i++)
		has_changed = put_back_partition(revision, &given->partitions[i], before) || has_changed;
	for (enum setting setting = 0; setting < SETTING_COUNT; setting++) {
		const struct part *part = &parts[setting];

		if (revision_gives(given, setting) && is_same(part, revision, given) &&
		    !is_same(part, revision, before)) {
			copy(part, revision, before);
			has_changed = true;
		}
	}
	return has_changed;
}

int revision_put_all(struct segment_revision *revision, const struct segment_revision *wanted, struct error *error)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < wanted->count; i++)
		result = revision_put(revision, &wanted->partitions[i], error);
	revision_put_settings(revision, wanted);
	return result;
}

void revision_put_missing(struct segment_revision *revision, const struct segment_revision *other)
{
	struct segment_revision own = *revision;

	revision_put_settings(revision, other);
	revision_put_settings(revision, &own);
	for (uint32_t i = 0; i < other->count; i++) {
		if (!revision_find_partition(revision, other->partitions[i].pci))
			revision_put(revision, &other->partitions[i], NULL);
	}
}
