#include "counts_read.h"

#include "base/extremes.h"
#include "base/identity.h"
#include "base/proc.h"
#include "counts_layout.h"
#include "state/segment/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALL_GAPS ((UINT32_C(1) << COUNTS_GAP_COUNT) - 1)
#define BIT(gap) (UINT32_C(1) << (gap))

const char *counts_gap_text(enum counts_gap gap)
{
	static const char *const texts[] = {
#define GAP_TEXT(identifier, text) text,
		COUNTS_GAPS(GAP_TEXT)
#undef GAP_TEXT
	};

	return texts[gap];
}

bool counts_know_launched(uint32_t gaps)
{
	return !(gaps & (BIT(COUNTS_OFF) | BIT(COUNTS_NO_MEMORY) | BIT(COUNTS_OLDER) | BIT(COUNTS_CLOSED) |
	                 BIT(COUNTS_REPEATED) | BIT(COUNTS_UNSEEN)));
}

bool counts_know_ended(uint32_t gaps)
{
	return gaps == 0;
}

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

/* --- a place ------------------------------------------------------------------------------------------------------ */

#define ALL_SLOTS ((UINT64_C(1) << (COUNTER_SLOTS - 1)) - 1)

uint64_t counts_place_plain(const struct counts_place *place)
{
	uint64_t sum = load(&place->plain);

	for (uint64_t used = load(&place->used) & ALL_SLOTS; used != 0; used &= used - 1)
		sum = sum_u64(sum, load(&place->slots[__builtin_ctzll(used)].plain));
	return sum;
}

uint64_t counts_place_launches(const struct counts_place *place)
{
	uint64_t sum = load(&place->moves);

	for (uint64_t used = load(&place->used) & ALL_SLOTS; used != 0; used &= used - 1)
		sum += load(&place->slots[__builtin_ctzll(used)].plain);
	return sum;
}

/* `ended` was read first: a kernel launched and ended meanwhile is in flight. The result is too small only during the
 * launch of a graph, counted at the end of the call: the first kernels may have ended before. */
static uint64_t in_flight(uint64_t launched, uint64_t ended, uint64_t uncounted)
{
	return rest_u64(launched, sum_u64(ended, uncounted));
}

/* Reads `open` before the launched kernels: a call that has ended by then has counted its kernels. */
static void add_place(struct counts_of_gpu *gpu, const struct counts_place *place)
{
	uint64_t plain_ended = load(&place->ended[COUNTS_PLAIN].kernels);
	uint64_t nodes_ended = load(&place->ended[COUNTS_NODE].kernels);
	uint64_t unheard = load(&place->ended[COUNTS_UNHEARD].kernels);
	uint64_t open = load(&place->moves) & COUNTS_GRAPHS_OPEN;
	uint64_t plain = counts_place_plain(place), nodes = load(&place->nodes);

	gpu->ended = sum_u64(gpu->ended, sum_u64(unheard, sum_u64(plain_ended, nodes_ended)));
	gpu->unheard = sum_u64(gpu->unheard, unheard);
	gpu->launched = sum_u64(gpu->launched, sum_u64(unheard, sum_u64(plain, nodes)));
	gpu->gaps |= (uint32_t)load(&place->gaps) & ALL_GAPS;
	if (load(&place->state) == COUNTS_IN_USE)
		gpu->in_flight = sum_u64(sum_u64(gpu->in_flight, open), sum_u64(
			in_flight(plain, plain_ended, load(&place->uncounted[COUNTS_PLAIN])),
			in_flight(nodes, nodes_ended, load(&place->uncounted[COUNTS_NODE]))));
}

uint64_t counts_place_in_flight(const struct counts_place *place)
{
	struct counts_of_gpu counted = {.in_flight = 0};

	add_place(&counted, place);
	return counted.in_flight;
}

bool counts_place_is_exact(const struct counts_place *place)
{
	return load(&place->gaps) == 0 && load(&place->ended[COUNTS_UNHEARD].kernels) == 0;
}

/* --- areas ------------------------------------------------------------------------------------------------------- */

static struct counts_of_gpu *entry_for(struct counts *counts, struct pci_address pci)
{
	struct counts_of_gpu *found =
		(struct counts_of_gpu *)pci_address_find(pci, counts->gpus, counts->count, sizeof *found);

	if (!found && counts->count < COUNTS_GPUS) { /* more only in a hostile process */
		found = &counts->gpus[counts->count++];
		*found = (struct counts_of_gpu){.pci = pci};
	}
	return found;
}

/* Whether the owner has given out the place: in the order of numbers, for ever, each in pages of its own. */
static bool has_place(const struct counts_memory *memory, int number)
{
	return number < COUNTS_PLACES && load(&memory->places[number].magic) == COUNTS_MAGIC;
}

/* Memory of NULL, or without an area, is a gap. */
static void add_area(struct counts *counts, const struct counts_memory *memory)
{
	bool is_known = area_is(memory, &counts_area_kind);

	if (!is_known)
		counts->gaps |= BIT(COUNTS_CLOSED);
	for (int i = 0; is_known && has_place(memory, i); i++) {
		const struct counts_place *place = &memory->places[i];
		struct counts_of_gpu *gpu = entry_for(counts, place->pci);

		if (gpu)
			add_place(gpu, place);
	}
}

/* --- the calling process ------------------------------------------------------------------------------------------ */

static const struct counts_memory *memory_of(const struct counts_area *area)
{
	return (const struct counts_memory *)area->area.memory;
}

void counts_read_own(const struct counts_areas *areas, const struct segment *segment, struct counts *counts)
{
	*counts = (struct counts){.gaps = (uint32_t)load(&segment->memory->gaps) & ALL_GAPS};
	for (unsigned int i = 0; i < areas->count; i++)
		add_area(counts, memory_of(&areas->list[i]));
}

/* Adds the area's places in use on the GPU behind `count` places, up to `room` places. `memory` may be NULL. */
static unsigned int add_places(const struct counts_memory *memory, struct pci_address pci,
                               const struct counts_place *places[], unsigned int room, unsigned int count)
{
	for (int i = 0; memory && has_place(memory, i); i++) {
		const struct counts_place *place = &memory->places[i];
		bool is_used = load(&place->state) == COUNTS_IN_USE && pci_address_equal(place->pci, pci);

		if (is_used && count < room)
			places[count] = place;
		count += is_used;
	}
	return count;
}

unsigned int counts_own_places(const struct counts_areas *areas, struct pci_address pci,
                               const struct counts_place *places[], unsigned int room)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < areas->count; i++)
		count = add_places(memory_of(&areas->list[i]), pci, places, room, count);
	return count;
}

/* --- views ------------------------------------------------------------------------------------------------------ */

#define NOT_MAPPED UINT64_MAX /* no file has this inode number */

#define SPARES_MAX 512

/* Other threads may still read a mapping here. So the addresses are never unmapped: zeros replace the mapping, and
 * later the next mapping. */
static struct spare {
	void *at;
	size_t size;
} spares[SPARES_MAX];
static unsigned int spare_count;

static void unmap(const void *memory, size_t size)
{
	void *at = (void *)memory;
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

	if (at && mmap(at, size, PROT_READ, how, -1, 0) == at && spare_count < SPARES_MAX)
		spares[spare_count++] = (struct spare){at, size};
}

static const void *map(int directory, uint64_t number, uint64_t inode, size_t size)
{
	unsigned int i = 0;

	while (i < spare_count && spares[i].size != size)
		i++;
	const void *memory = area_map_at(directory, number, inode, size, i < spare_count ? spares[i].at : NULL);

	if (memory && i < spare_count)
		spares[i] = spares[--spare_count];
	return memory;
}

/* An area that the reader's own limits keep from being mapped is a gap, and comes again at the next look. */
static void map_area(struct counts_view *view, int place, int directory)
{
	struct counts_view_area *area = &view->areas[place];
	const struct segment_area *named = &view->segment->areas[place];
	uint64_t inode = load(&named->inode);

	unmap(area->memory, sizeof *area->memory);
	area->memory = NULL;
	if (inode != 0 && directory >= 0)
		area->memory = map(directory, atomic_load(&named->file), inode, sizeof *area->memory);
	bool is_limited = inode != 0 && !area->memory && (directory < 0 || proc_is_limit(errno));

	area->inode = is_limited ? NOT_MAPPED : inode;
}

void counts_view_follow(struct counts_view *view)
{
	int saved = errno, directory = -1;

	for (int i = 0; view->segment && i < SEGMENT_AREAS; i++) {
		if (view->areas[i].inode != load(&view->segment->areas[i].inode)) {
			directory = directory < 0 ? proc_open(view->pid, "fd", O_RDONLY | O_DIRECTORY) : directory;
			map_area(view, i, directory);
		}
	}
	if (directory >= 0)
		close(directory);
	errno = saved;
}

/* The owner's claim soon ceases to name a moved segment. */
static bool is_segment(const struct segment_memory *memory)
{
	return load(&memory->magic) == SEGMENT_MAGIC &&
	       memory->version == SEGMENT_VERSION && memory->size == sizeof *memory;
}

static const struct segment_memory *map_segment(int directory, uint64_t descriptor, uint64_t inode)
{
	const struct segment_memory *memory = map(directory, descriptor, inode, sizeof *memory);

	if (memory && !is_segment(memory)) {
		unmap(memory, sizeof *memory);
		memory = NULL;
	}
	return memory;
}

bool counts_view_open(struct counts_view *view, pid_t pid, uint64_t descriptor, uint64_t inode)
{
	int saved = errno, directory = proc_open(pid, "fd", O_RDONLY | O_DIRECTORY);

	*view = (struct counts_view){.pid = pid};
	if (directory >= 0) {
		view->segment = map_segment(directory, descriptor, inode);
		close(directory);
	}
	counts_view_follow(view);
	errno = saved;
	return view->segment != NULL;
}

void counts_view_close(struct counts_view *view)
{
	for (int i = 0; i < SEGMENT_AREAS; i++)
		unmap(view->areas[i].memory, sizeof *view->areas[i].memory);
	unmap(view->segment, sizeof *view->segment);
	*view = (struct counts_view){.segment = NULL};
}

bool counts_view_is_current(const struct counts_view *view)
{
	int saved = errno;

	errno = 0;
	uint64_t execution = view->segment ? identity_execution_of(view->pid) : 0;
	bool is_limited = view->segment && execution == 0 && proc_is_limit(errno);

	errno = saved;
	return is_limited || (execution != 0 && execution == atomic_load(&view->segment->execution));
}

struct counts_of_gpu counts_on(const struct counts *counts, struct pci_address pci)
{
	const struct counts_of_gpu *found = pci_address_find(pci, counts->gpus, counts->count, sizeof *found);
	struct counts_of_gpu on = found ? *found : (struct counts_of_gpu){.pci = pci};

	on.gaps |= counts->gaps;
	return on;
}

struct counts_of_gpu counts_view_read(const struct counts_view *view, struct pci_address pci)
{
	struct counts counts = {.gaps = view->segment ? (uint32_t)load(&view->segment->gaps) & ALL_GAPS : 0};

	for (int i = 0; i < SEGMENT_AREAS; i++) {
		if (view->areas[i].inode != 0)
			add_area(&counts, view->areas[i].memory);
	}
	return counts_on(&counts, pci);
}

unsigned int counts_view_places(const struct counts_view *view, struct pci_address pci,
                                const struct counts_place *places[], unsigned int room)
{
	unsigned int count = 0;

	for (int i = 0; i < SEGMENT_AREAS; i++)
		count = add_places(view->areas[i].memory, pci, places, room, count);
	return count;
}

const _Atomic uint64_t *counts_view_number(const struct counts_view *view)
{
	return &view->segment->contexts;
}

bool counts_view_has_gap(const struct counts_view *view)
{
	return load(&view->segment->gaps) != 0;
}

const _Atomic uint64_t *counts_view_openings(const struct counts_view *view)
{
	return &view->segment->openings;
}

/* For a wake; the memory cannot be written. */
_Atomic uint32_t *counts_view_rings(const struct counts_view *view)
{
	return (_Atomic uint32_t *)&view->segment->rings;
}

/* --- reading once ------------------------------------------------------------------------------------------------- */

/* After an exec, until the library is at work again, the segment names the areas of the former execution. */
static bool is_of_former_execution(const struct segment *segment, pid_t pid)
{
	uint64_t execution = load(&segment->memory->execution), now = execution != 0 ? identity_execution_of(pid) : 0;

	return now != 0 && now != execution;
}

/* Returns errno for a limit of the reader, otherwise 0. */
static int read_area(struct counts *counts, int directory, uint64_t number, uint64_t inode)
{
	const struct counts_memory *memory = area_map(directory, number, inode, sizeof *memory);
	int limit = proc_is_limit(errno) ? errno : 0;

	add_area(counts, memory);
	if (memory)
		munmap((void *)memory, sizeof *memory);
	return limit;
}

int counts_read(const struct segment *segment, pid_t pid, struct counts *counts, struct error *error)
{
	const struct segment_memory *memory = segment->memory;
	int saved = errno, directory = proc_open(pid, "fd", O_RDONLY | O_DIRECTORY);
	int limit = directory < 0 && proc_is_limit(errno) ? errno : 0;

	*counts = (struct counts){.gaps = (uint32_t)load(&memory->gaps) & ALL_GAPS};
	for (int i = 0; i < SEGMENT_AREAS && limit == 0; i++) {
		uint64_t inode = load(&memory->areas[i].inode);

		if (inode != 0)
			limit = read_area(counts, directory, load(&memory->areas[i].file), inode);
	}
	if (directory >= 0)
		close(directory);
	if (counts->gaps != 0 && is_of_former_execution(segment, pid))
		*counts = (struct counts){.count = 0};
	errno = limit != 0 ? limit : saved;
	return limit != 0 ? error_set_errno(error, "counts of kernels") : 0;
}
