/* The ring of revisions, used by owners and editors. */
#include "layout.h"

#include "base/ring.h"

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

void segment_store(struct segment_memory *memory, uint64_t number, const struct segment_revision *revision)
{
	size_t used = words_used(revision->count);
	uint64_t words[SEGMENT_REVISION_WORDS];

	memcpy(words, revision, used * sizeof words[0]);
	ring_fill(memory->ring[number % SEGMENT_RING], words, used);
}

/* False if editors went round the ring while we copied. */
static bool load_revision(const struct segment_memory *memory, uint64_t number,
                          struct segment_revision *revision)
{
	const _Atomic uint64_t *place = memory->ring[number % SEGMENT_RING];
	uint64_t words[SEGMENT_REVISION_WORDS] = {0};
	uint32_t count;

	ring_copy(words, place, 1);
	memcpy(&count, words, sizeof count);
	ring_copy(&words[1], &place[1], words_used(count) - 1);
	memcpy(revision, words, sizeof *revision);
	return ring_is_whole(&memory->number, number, SEGMENT_RING);
}

bool segment_read(const struct segment *segment, struct segment_revision *revision, uint64_t *number)
{
	bool whole = false;

	for (int attempt = 0; !whole && attempt < READ_ATTEMPTS; attempt++) {
		*number = segment_revision_number(segment);
		whole = load_revision(segment->memory, *number, revision);
	}
	return whole && revision->count <= SEGMENT_GPUS;
}

const struct segment_partition *segment_find(const struct segment_revision *revision, struct pci_address pci)
{
	const struct segment_partition *found = NULL;

	for (uint32_t i = 0; i < revision->count && !found; i++) {
		if (pci_address_equal(revision->partitions[i].pci, pci))
			found = &revision->partitions[i];
	}
	return found;
}
