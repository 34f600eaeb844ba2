/*
 * Any content in a segment. The owner, whose editors may be hostile, reads a revision or says that there is none; an
 * editor, whose owner may be hostile, refuses with a reason, or edits and finds what it wrote. A reader of counts gets
 * numbers that agree with each other, whatever the memory has in which they are.
 */
#include "fuzz.h"
#include "state/kernels/counts_read.h"
#include "state/segment/layout.h"

#include "base/extremes.h"
#include "base/identity.h"
#include "state/kernels/counts_layout.h"
#include "state/revision_text.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/owner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "nvtaskset"
#define HEADER 32 /* magic number, version, size and owner */

/* Bits of the input's first byte. */
enum {
	OWNER_IS_HOSTILE = 1, KEEP_HEADER = 2, SEAL_SHRINK = 4, SEAL_GROW = 8, SEAL_WRITE = 16, OTHER_SIZE = 32,
	HAS_AREA = 64,      /* the segment names a file with counts, */
	KEEP_AREA_HEADS = 128 /* of which what says that it is one is as it should be */
};

static struct segment owner;
static uint8_t *memory; /* the owner's */
static uint8_t header[HEADER];
static size_t segment_size;

static void set_up(void)
{
	static const struct segment_revision nothing;
	struct stat status;

	must(segment_create(&owner, &nothing, NULL, -1, -1, NULL) == 0);
	must(fstat(owner.file, &status) == 0);
	segment_size = (size_t)status.st_size;
	memory = (uint8_t *)owner.memory;
	memcpy(header, memory, sizeof header);
}

/* --- a hostile editor ----------------------------------------------------------------------------------------- */

static void check_revision(const struct segment_revision *revision)
{
	char text[SEGMENT_ENVIRONMENT_MAX], set[TPCSET_TEXT];

	must(revision->count <= SEGMENT_GPUS);
	for (uint32_t i = 0; i < revision->count; i++) {
		struct pci_address pci = revision->partitions[i].pci;
		const struct segment_partition *found = revision_find_partition(revision, pci);

		must(found && found <= &revision->partitions[i] && pci_address_equal(found->pci, pci));
		must(strlen(tpcset_format_list(&found->set, set)) < sizeof set);
		must(strlen(tpcset_format_mask(&found->set, set)) < sizeof set);
	}
	must(strlen(revision_format(revision, text)) < sizeof text);
}

static void check_owner(uint8_t choices, const uint8_t *data, size_t size)
{
	struct segment_revision revision;
	uint64_t number;

	fill(memory, segment_size, data, size);
	if (choices & KEEP_HEADER)
		memcpy(memory, header, sizeof header);
	if (segment_read(&owner, &revision, &number)) {
		must(number == segment_revision_number(&owner));
		check_revision(&revision);
	}
}

/* --- hostile counts ------------------------------------------------------------------------------------------- */

/* The places' heads, too, or few inputs would have any. */
static void keep_heads(struct counts_memory *area)
{
	area->header.magic = COUNTS_MAGIC;
	area->header.version = COUNTS_VERSION;
	area->header.size = sizeof *area;
	for (int i = 0; i < COUNTS_PLACES; i++) {
		area->places[i].magic = COUNTS_MAGIC;
		area->places[i].state %= COUNTS_ENDED + 1;
	}
}

/* The file of an area, which the segment is made to name. */
static int make_area(struct segment_memory *segment, uint8_t choices, const uint8_t *data, size_t size)
{
	int file = memfd_create("nvtaskset-counts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat status;

	must(file >= 0 && ftruncate(file, sizeof(struct counts_memory)) == 0 && fstat(file, &status) == 0);
	struct counts_memory *area = mmap(NULL, sizeof *area, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	must(area != MAP_FAILED);
	fill(area, sizeof *area, data, size);
	if (choices & KEEP_AREA_HEADS)
		keep_heads(area);
	munmap(area, sizeof *area);
	must(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	for (int i = 0; i < SEGMENT_AREAS; i++) {
		segment->areas[i].file = (uint64_t)file;
		segment->areas[i].inode = status.st_ino;
	}
	return file;
}

static void check_counts_of_gpu(const struct counts *counts, unsigned int number)
{
	const struct counts_of_gpu *gpu = &counts->gpus[number];

	must(gpu->gaps >> COUNTS_GAP_COUNT == 0);
	/* A graph whose call has not ended is in flight, and is counted later. */
	must(gpu->in_flight <= sum_u64(gpu->launched, (uint64_t)COUNTS_GRAPHS_OPEN * COUNTS_PLACES * SEGMENT_AREAS));
	must(gpu->unheard <= gpu->launched && gpu->unheard <= gpu->ended);
	for (unsigned int i = 0; i < number; i++)
		must(!pci_address_equal(counts->gpus[i].pci, gpu->pci));
}

static void check_counts(const struct segment *segment, bool has_area)
{
	uint64_t execution = atomic_load(&segment->memory->execution);
	bool is_former = execution != 0 && execution != identity_own_execution(); /* then there may be none */
	struct counts counts;

	counts_read(segment, getpid(), &counts, NULL);
	must(counts.gaps >> COUNTS_GAP_COUNT == 0 && counts.count <= COUNTS_GPUS);
	for (unsigned int i = 0; i < counts.count; i++)
		check_counts_of_gpu(&counts, i);
	must(!has_area || is_former || counts.count > 0);
}

/* --- a hostile owner ------------------------------------------------------------------------------------------ */

static unsigned int seals_of(uint8_t choices)
{
	return (choices & SEAL_SHRINK ? F_SEAL_SHRINK : 0) | (choices & SEAL_GROW ? F_SEAL_GROW : 0) |
	       (choices & SEAL_WRITE ? F_SEAL_WRITE : 0);
}

/* Its descriptor number is below the owner's, so it is found first. */
static int make_hostile(uint8_t choices, const uint8_t *data, size_t size, int *area)
{
	int file = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t room = choices & OTHER_SIZE ? size : segment_size;
	uint8_t *content = malloc(room + HEADER);

	must(file >= 0 && file < owner.file && content);
	fill(content, room, data, size);
	if (choices & KEEP_HEADER)
		memcpy(content, header, sizeof header);
	*area = choices & HAS_AREA && room >= segment_size ? make_area((void *)content, choices, data, size) : -1;
	must(write(file, content, room) == (ssize_t)room);
	must(fcntl(file, F_ADD_SEALS, seals_of(choices)) == 0);
	free(content);
	return file;
}

static void check_edit(struct segment *segment, const uint8_t *data, size_t size)
{
	struct error error = {.reason = ""};
	struct segment_revision revision;
	struct segment_partition wanted;
	uint64_t number, before = segment_revision_number(segment);

	fill(&wanted, sizeof wanted, data, size);
	if (segment_change(segment, &(struct segment_revision){.count = 1, .partitions[0] = wanted}, NULL, &error) < 0) {
		must(error.reason[0] && segment_revision_number(segment) == before);
		return;
	}
	must(segment_read(segment, &revision, &number) && number == before + 1);
	check_revision(&revision);
	const struct segment_partition *found = revision_find_partition(&revision, wanted.pci);

	must(found && tpcset_equal(&found->set, &wanted.set));
}

static void check_editor(uint8_t choices, const uint8_t *data, size_t size)
{
	struct error error = {.reason = ""};
	struct segment_counters counters;
	struct segment segment;
	int area, file = make_hostile(choices, data, size, &area);
	uint8_t good = SEAL_SHRINK | SEAL_GROW;

	/* Without its magic, the owner's own is not found in place of it. */
	memset(memory, 0, sizeof(uint64_t));

	if (segment_open(&segment, getpid(), NULL, &error) == SEGMENT_FOUND) {
		must((choices & (good | SEAL_WRITE)) == good);
		must(!(choices & OTHER_SIZE) || size == segment_size);
		segment_read_counters(&segment, &counters);
		check_counts(&segment, area >= 0 && choices & KEEP_AREA_HEADS);
		check_edit(&segment, data, size);
	} else {
		must(error.reason[0] && !segment.memory);
		must((choices & (good | KEEP_HEADER | SEAL_WRITE | OTHER_SIZE)) != (good | KEEP_HEADER));
	}
	segment_close(&segment);
	close(file);
	if (area >= 0)
		close(area);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!memory)
		set_up();
	if (size > 0 && data[0] & OWNER_IS_HOSTILE)
		check_editor(data[0], data + 1, size - 1);
	else if (size > 0)
		check_owner(data[0], data + 1, size - 1);
	return 0;
}
