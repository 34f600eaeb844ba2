/* The owner's side of the counts. */
#include "counts_layout.h"
#include "state/segment/layout.h"

#include <sys/mman.h>
#include <unistd.h>

const struct area_kind counts_area_kind = {COUNTS_NAME, COUNTS_MAGIC, COUNTS_VERSION, sizeof(struct counts_memory)};

/* --- areas ------------------------------------------------------------------------------------------------------ */

static struct counts_area *make_area(struct counts_areas *areas, const struct segment *segment, uint64_t reach,
                                     struct error *error)
{
	struct area area;

	if (areas->count == SEGMENT_AREAS) {
		error_set(error, "no room for more counts");
		return NULL;
	}
	if (area_make(&area, &counts_area_kind, reach, error) < 0)
		return NULL;
	uint64_t place = atomic_fetch_add(&segment->memory->areas_made, 1);

	if (place >= SEGMENT_AREAS) {
		error_set(error, "no room for more counts");
		munmap(area.memory, counts_area_kind.size);
		close(area.file);
		return NULL;
	}
	area_name(&area, &segment->memory->areas[place]);
	areas->list[areas->count] = (struct counts_area){.area = area};
	return &areas->list[areas->count++];
}

static bool is_open(const struct counts_area *area)
{
	return area_is_open(&area->area, &counts_area_kind);
}

void counts_after_fork(struct counts_areas *areas)
{
	for (unsigned int i = 0; i < areas->count; i++)
		area_leave(&areas->list[i].area, &counts_area_kind);
	*areas = (struct counts_areas){.count = 0};
}

/* --- places ----------------------------------------------------------------------------------------------------- */

static struct counts_place *places_of(const struct counts_area *area)
{
	return ((struct counts_memory *)area->area.memory)->places;
}

static struct counts_place *find_used(const struct counts_area *area, struct pci_address pci, unsigned int from)
{
	struct counts_place *found = NULL;

	for (unsigned int i = 0; i < area->used && !found; i++) {
		struct counts_place *place = &places_of(area)[i];
		uint64_t ended = COUNTS_ENDED;

		if (place->number >= from && pci_address_equal(place->pci, pci) &&
		    atomic_compare_exchange_strong(&place->state, &ended, COUNTS_UNUSED))
			found = place;
	}
	return found;
}

static struct counts_place *take_unused(struct counts_area *area, unsigned int area_number, struct pci_address pci)
{
	struct counts_place *place = NULL;

	if (area->used < COUNTS_PLACES) {
		place = &places_of(area)[area->used];
		place->pci = pci;
		place->number = (uint64_t)area_number * COUNTS_PLACES + area->used++;
		atomic_store_explicit(&place->magic, COUNTS_MAGIC, memory_order_release);
	}
	return place;
}

struct counts_place *counts_take(struct counts_areas *areas, const struct segment *segment, struct pci_address pci,
                                 uint64_t reach, unsigned int from, struct error *error)
{
	struct counts_area *last = areas->count > 0 ? &areas->list[areas->count - 1] : NULL;
	struct counts_place *place = NULL;

	for (unsigned int i = 0; i < areas->count && !place; i++)
		place = is_open(&areas->list[i]) ? find_used(&areas->list[i], pci, from) : NULL;
	if (!place && (!last || !is_open(last) || last->used == COUNTS_PLACES))
		last = make_area(areas, segment, reach, error);
	if (!place && last)
		place = take_unused(last, (unsigned int)(last - areas->list), pci);
	return place;
}

unsigned int counts_number(const struct counts_place *place)
{
	return (unsigned int)place->number;
}

/* To be called after the change. */
static void move(struct counts_place *place)
{
	atomic_fetch_add(&place->moves, COUNTS_MOVE);
}

/* Kernels in flight of a former context never end. */
static void give_up(struct counts_place *place, enum counts_kind kind, uint64_t launched)
{
	uint64_t ended = atomic_load_explicit(&place->ended[kind].kernels, memory_order_relaxed);

	atomic_store_explicit(&place->uncounted[kind], launched - ended, memory_order_relaxed);
}

void counts_begin(struct counts_place *place)
{
	give_up(place, COUNTS_PLAIN, counts_place_plain(place));
	give_up(place, COUNTS_NODE, atomic_load_explicit(&place->nodes, memory_order_relaxed));
	atomic_fetch_and(&place->moves, ~COUNTS_GRAPHS_OPEN);
	atomic_store_explicit(&place->state, COUNTS_IN_USE, memory_order_release);
	move(place);
}

void counts_announce(const struct segment *segment)
{
	atomic_fetch_add(&segment->memory->contexts, 1);
}

void counts_end(struct counts_place *place)
{
	atomic_store_explicit(&place->state, COUNTS_ENDED, memory_order_release);
}

/* --- counting --------------------------------------------------------------------------------------------------- */

_Atomic uint64_t *counts_ended(struct counts_place *place, enum counts_kind kind)
{
	return &place->ended[kind].kernels;
}

_Atomic uint64_t *counts_launched(struct counts_place *place, const struct segment *segment,
                                  const struct counter_slot *slot)
{
	size_t number = (size_t)(slot - segment->slots - 1);

	atomic_fetch_or(&place->used, UINT64_C(1) << number);
	move(place);
	return &place->slots[number].plain;
}

void counts_launch_shared(struct counts_place *place)
{
	atomic_fetch_add_explicit(&place->plain, 1, memory_order_relaxed);
	move(place);
}

void counts_launch_nodes(struct counts_place *place, uint64_t kernels)
{
	atomic_fetch_add_explicit(&place->nodes, kernels, memory_order_relaxed);
}

void counts_graph_begins(struct counts_place *place)
{
	atomic_fetch_add(&place->moves, COUNTS_GRAPH_BEGINS);
}

void counts_graph_ended(struct counts_place *place)
{
	atomic_fetch_sub(&place->moves, 1);
}

void counts_note_uncounted(struct counts_place *place, enum counts_kind kind, uint64_t kernels)
{
	if (kind != COUNTS_UNHEARD)
		atomic_fetch_add_explicit(&place->uncounted[kind], kernels, memory_order_relaxed);
}

/* Most gaps are noted again and again. Returns whether the gap is new. */
static bool note(_Atomic uint64_t *gaps, enum counts_gap gap)
{
	uint64_t bit = UINT64_C(1) << gap;

	return !(atomic_load_explicit(gaps, memory_order_relaxed) & bit) && !(atomic_fetch_or(gaps, bit) & bit);
}

void counts_note_gap(struct counts_place *place, enum counts_gap gap)
{
	if (note(&place->gaps, gap))
		move(place);
}

void counts_note_gap_everywhere(const struct segment *segment, enum counts_gap gap)
{
	if (note(&segment->memory->gaps, gap))
		counts_announce(segment);
}
