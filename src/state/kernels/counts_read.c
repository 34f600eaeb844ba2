/* Reading what a process has counted. The process may be hostile. */
#include "counts_layout.h"
#include "state/segment/layout.h"

#include "area.h"
#include "base/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* --- one place -------------------------------------------------------------------------------------------------- */

static uint64_t launched_plain(const struct counts_place *place)
{
	uint64_t sum = load(&place->plain), used = load(&place->used) & ((UINT64_C(1) << (COUNTER_SLOTS - 1)) - 1);

	for (; used != 0; used &= used - 1)
		sum = segment_sum(sum, load(&place->slots[__builtin_ctzll(used)].plain));
	return sum;
}

uint64_t counts_place_launches(const struct counts_place *place)
{
	uint64_t sum = load(&place->plain) + load(&place->nodes) + load(&place->graphs) + (load(&place->gaps) << 48);

	for (uint64_t used = load(&place->used) & ((UINT64_C(1) << (COUNTER_SLOTS - 1)) - 1); used != 0; used &= used - 1)
		sum += load(&place->slots[__builtin_ctzll(used)].plain);
	return sum;
}

/* `ended` was read first, so a kernel that was launched and has ended meanwhile is in flight. There are too few only while
 * a graph is being launched: that is counted when the call ends, and its first kernels may have ended before. */
static uint64_t in_flight(uint64_t launched, uint64_t ended, uint64_t uncounted)
{
	uint64_t gone = segment_sum(ended, uncounted);

	return launched > gone ? launched - gone : 0;
}

/* A graph's call is looked at before the kernels that it counts as launched: one that is found to have ended has counted them. */
uint64_t counts_place_in_flight(const struct counts_place *place)
{
	uint64_t plain_ended = load(&place->ended[COUNTS_PLAIN].kernels);
	uint64_t nodes_ended = load(&place->ended[COUNTS_NODE].kernels);
	uint64_t open = load(&place->graphs) & COUNTS_GRAPHS_OPEN;
	uint64_t flying = open + in_flight(launched_plain(place), plain_ended, load(&place->uncounted[COUNTS_PLAIN])) +
	                  in_flight(load(&place->nodes), nodes_ended, load(&place->uncounted[COUNTS_NODE]));

	return load(&place->state) == COUNTS_IN_USE ? flying : 0;
}

uint64_t counts_place_ended(const struct counts_place *place)
{
	return load(&place->ended[COUNTS_PLAIN].kernels) + load(&place->ended[COUNTS_NODE].kernels);
}

bool counts_place_is_exact(const struct counts_place *place)
{
	return load(&place->gaps) == 0 && load(&place->ended[COUNTS_UNHEARD].kernels) == 0;
}

static void add_place(struct counts_of_gpu *gpu, const struct counts_place *place)
{
	uint64_t plain_ended = load(&place->ended[COUNTS_PLAIN].kernels);
	uint64_t nodes_ended = load(&place->ended[COUNTS_NODE].kernels);
	uint64_t unheard = load(&place->ended[COUNTS_UNHEARD].kernels);
	uint64_t open = load(&place->graphs) & COUNTS_GRAPHS_OPEN;
	uint64_t plain = launched_plain(place), nodes = load(&place->nodes);

	gpu->ended = segment_sum(gpu->ended, segment_sum(unheard, segment_sum(plain_ended, nodes_ended)));
	gpu->unheard = segment_sum(gpu->unheard, unheard);
	gpu->launched = segment_sum(gpu->launched, segment_sum(unheard, segment_sum(plain, nodes)));
	gpu->gaps |= (uint32_t)load(&place->gaps) & ALL_GAPS;
	if (load(&place->state) == COUNTS_IN_USE)
		gpu->in_flight = segment_sum(segment_sum(gpu->in_flight, open),
		                             segment_sum(in_flight(plain, plain_ended, load(&place->uncounted[COUNTS_PLAIN])),
		                                         in_flight(nodes, nodes_ended, load(&place->uncounted[COUNTS_NODE]))));
}

/* NULL if the list is full, as only a hostile process's is. */
static struct counts_of_gpu *entry_for(struct counts *counts, struct pci_address pci)
{
	struct counts_of_gpu *found = NULL;

	for (unsigned int i = 0; i < counts->count && !found; i++)
		found = pci_address_equal(counts->gpus[i].pci, pci) ? &counts->gpus[i] : NULL;
	if (!found && counts->count < COUNTS_GPUS) {
		found = &counts->gpus[counts->count++];
		*found = (struct counts_of_gpu){.pci = pci};
	}
	return found;
}

static void add_area(struct counts *counts, const struct counts_memory *memory)
{
	for (int i = 0; i < COUNTS_PLACES; i++) {
		const struct counts_place *place = &memory->places[i];
		struct counts_of_gpu *gpu = load(&place->magic) == COUNTS_MAGIC ? entry_for(counts, place->pci) : NULL;

		if (gpu)
			add_place(gpu, place);
	}
}

/* --- finding areas ---------------------------------------------------------------------------------------------- */

static bool is_known(const struct counts_memory *memory)
{
	return memory && load(&memory->magic) == COUNTS_MAGIC && memory->version == COUNTS_VERSION &&
	       memory->size == sizeof *memory;
}

struct counts_of_gpu counts_sum_on(const struct counts_memory *const areas[], unsigned int count, uint64_t gaps,
                                   struct pci_address pci)
{
	struct counts_of_gpu sum = {.pci = pci, .gaps = (uint32_t)gaps & ALL_GAPS};

	for (unsigned int i = 0; i < count; i++) {
		if (!is_known(areas[i]))
			sum.gaps |= BIT(COUNTS_CLOSED);
		for (int place = 0; is_known(areas[i]) && place < COUNTS_PLACES; place++) {
			const struct counts_place *there = &areas[i]->places[place];

			if (load(&there->magic) == COUNTS_MAGIC && pci_address_equal(there->pci, pci))
				add_place(&sum, there);
		}
	}
	return sum;
}

/* errno is that of a limit if the reader's own is in the way, otherwise anything else. */
static void read_area(struct counts *counts, int directory, uint64_t number, uint64_t inode)
{
	const struct counts_memory *memory = area_map(directory, number, inode, sizeof *memory);

	if (is_known(memory))
		add_area(counts, memory);
	else
		counts->gaps |= BIT(COUNTS_CLOSED);
	if (memory)
		munmap((void *)memory, sizeof *memory);
}

/* After an exec, until the library is at work again, the segment names what the former execution had. */
static bool is_of_former_execution(const struct segment *segment, pid_t pid)
{
	uint64_t execution = load(&segment->memory->execution), now = execution != 0 ? execution_of(pid) : 0;

	return now != 0 && now != execution;
}

int counts_read(const struct segment *segment, pid_t pid, struct counts *counts, struct error *error)
{
	const struct segment_memory *memory = segment->memory;
	int saved = errno;
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), limit = 0;

	if (directory < 0 && area_is_limit(errno))
		limit = errno;
	*counts = (struct counts){.gaps = (uint32_t)load(&memory->gaps) & ALL_GAPS};
	for (int i = 0; i < SEGMENT_AREAS; i++) {
		uint64_t inode = load(&memory->areas[i].inode);

		if (inode != 0 && limit == 0) {
			read_area(counts, directory, load(&memory->areas[i].file), inode);
			limit = area_is_limit(errno) ? errno : 0;
		}
	}
	if (directory >= 0)
		close(directory);
	if (counts->gaps != 0 && is_of_former_execution(segment, pid))
		*counts = (struct counts){.count = 0};
	errno = limit != 0 ? limit : saved;
	return limit != 0 ? error_set_errno(error, "counts of kernels") : 0;
}

struct counts_of_gpu counts_on(const struct counts *counts, struct pci_address pci)
{
	struct counts_of_gpu found = {.pci = pci};

	for (unsigned int i = 0; i < counts->count; i++) {
		if (pci_address_equal(counts->gpus[i].pci, pci))
			found = counts->gpus[i];
	}
	found.gaps |= counts->gaps;
	return found;
}

void counts_read_own(const struct counts_areas *areas, const struct segment *segment, struct counts *counts)
{
	*counts = (struct counts){.gaps = (uint32_t)load(&segment->memory->gaps) & ALL_GAPS};
	for (unsigned int i = 0; i < areas->count; i++)
		add_area(counts, areas->list[i].memory);
}

unsigned int counts_places_on(const struct counts_memory *memory, struct pci_address pci, const struct counts_place *places[],
                              unsigned int room, unsigned int count)
{
	for (int i = 0; memory && i < COUNTS_PLACES; i++) {
		const struct counts_place *place = &memory->places[i];
		bool is_used = load(&place->magic) == COUNTS_MAGIC && load(&place->state) == COUNTS_IN_USE &&
		               pci_address_equal(place->pci, pci);

		if (is_used && count < room)
			places[count] = place;
		count += is_used;
	}
	return count;
}

unsigned int counts_own_places(const struct counts_areas *areas, struct pci_address pci, const struct counts_place *places[],
                               unsigned int room)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < areas->count; i++)
		count = counts_places_on(areas->list[i].memory, pci, places, room, count);
	return count;
}
