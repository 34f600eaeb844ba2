/* What both sides do: the ring of revisions, the counters. */
#include "handle.h"
#include "layout.h"

#include "base/ring.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often a reader tries before it says that editors overtook it. */
#define READ_ATTEMPTS 4

const struct segment segment_closed = {.memory = NULL, .file = -1};

const char *segment_reason_text(enum segment_reason reason)
{
	static const char *const texts[] = {
#define REASON_TEXT(identifier, text) text,
		SEGMENT_REASONS(REASON_TEXT)
#undef REASON_TEXT
	};

	return texts[reason];
}

/* --- a hold on it ---------------------------------------------------------------------------------- */

bool segment_is_file(int file)
{
	struct stat status;
	int seals = fcntl(file, F_GET_SEALS);

	return seals >= 0 && (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW) &&
	       fstat(file, &status) == 0 && status.st_size == (off_t)sizeof(struct segment_memory);
}

struct segment segment_in(struct segment_memory *memory)
{
	return (struct segment){.memory = memory, .file = -1, .number = &memory->number, .places = memory->places};
}

static bool may_write(int file)
{
	return (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR;
}

bool segment_may_write(const struct segment *segment)
{
	return may_write(segment->file);
}

struct segment segment_map(int file)
{
	int protection = may_write(file) ? PROT_READ | PROT_WRITE : PROT_READ;
	struct segment_memory *memory = mmap(NULL, sizeof *memory, protection, MAP_SHARED, file, 0);
	struct segment segment;
	struct stat status;

	if (memory == MAP_FAILED || fstat(file, &status) < 0) {
		close(file);
		return segment_closed;
	}
	segment = segment_in(memory);
	segment.file = file;
	segment.inode = status.st_ino;
	return segment;
}

void segment_close(struct segment *segment)
{
	if (segment->memory)
		munmap(segment->memory, sizeof *segment->memory);
	/* The program may have closed it, and have a file of its own there. */
	if (handle_leads_to(segment->file, segment->inode))
		close(segment->file);
	*segment = segment_closed;
}

/* --- revisions in the ring ------------------------------------------------------------------------ */

/* Those that a revision of so many partitions takes: an edit is quick because the others are not copied. */
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

/* False where editors came round the ring while we copied. */
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

struct identity segment_owner(const struct segment *segment)
{
	return segment->memory->owner;
}

/* --- counters ---------------------------------------------------------------------------------------- */

void segment_count_reason(const struct segment *segment, enum segment_reason reason)
{
	atomic_fetch_add_explicit(&segment->memory->reasons[reason], 1, memory_order_relaxed);
}

void segment_count_refresh(const struct segment *segment)
{
	atomic_fetch_add_explicit(&segment->memory->refreshed, 1, memory_order_relaxed);
}

static uint64_t sum_launches(const struct segment_memory *memory, bool restricted)
{
	uint64_t sum = 0;

	for (int place = 0; place < SEGMENT_PLACES; place++) {
		uint64_t own = atomic_load_explicit(&memory->places[place].launches[restricted], memory_order_relaxed);

		sum = sum + own >= sum ? sum + own : UINT64_MAX;
	}
	return sum;
}

void segment_read_counters(const struct segment *segment, struct segment_counters *counters)
{
	const struct segment_memory *memory = segment->memory;

	counters->restricted = sum_launches(memory, true);
	counters->unrestricted = sum_launches(memory, false);
	counters->refreshed = atomic_load_explicit(&memory->refreshed, memory_order_relaxed);
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++)
		counters->reasons[reason] =
			atomic_load_explicit(&memory->reasons[reason], memory_order_relaxed);
}

