/* The owner's side: the memory for the times at which kernels have ended. */
#include "timestamps_layout.h"
#include "state/segment/layout.h"

#include <string.h>

static void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t pointer_word(const void *pointer)
{
	return (uintptr_t)pointer;
}

static uint64_t grid_word(struct qmd_grid grid)
{
	uint64_t word;

	memcpy(&word, &grid, sizeof word);
	return word;
}

void *timestamps_cells(struct timestamps *timestamps)
{
	return timestamps->cells;
}

/* --- launches --------------------------------------------------------------------------------------------------- */

/* The timestamp of an earlier kernel is there, or may still come, with its own number. The number stays: without the
 * number, the earlier kernel would seem to run. */
static struct timestamps_cell cell_of(struct timestamps *timestamps, uint64_t cell, uint64_t number)
{
	store(&timestamps->cells[cell].time, 0);
	return (struct timestamps_cell){.at = cell * sizeof timestamps->cells[0], .number = number};
}

/* The next record: no reader reads a record before the record has its number. */
static struct timestamps_record *begin_record(struct timestamps *timestamps, uint64_t *number)
{
	*number = atomic_fetch_add_explicit(&timestamps->launches, 1, memory_order_relaxed) + 1;
	struct timestamps_record *record = &timestamps->records[*number % TIMESTAMPS_CELLS];

	store(&record->number, 0);
	atomic_thread_fence(memory_order_release);
	return record;
}

static void end_record(struct timestamps_record *record, uint64_t number)
{
	atomic_store_explicit(&record->number, number, memory_order_release);
}

struct timestamps_cell timestamps_add_launch(struct timestamps *timestamps, const struct timestamps_launch *launch)
{
	uint64_t number;
	struct timestamps_record *record = begin_record(timestamps, &number);
	struct timestamps_cell cell = cell_of(timestamps, number % TIMESTAMPS_CELLS, number);

	store(&record->kind, TIMESTAMPS_LAUNCH);
	store(&record->launched_ns, launch->launched_ns);
	store(&record->function, pointer_word(launch->function));
	store(&record->stream, launch->stream);
	store(&record->tpcs, launch->tpcs);
	store(&record->grid, grid_word(launch->grid));
	end_record(record, number);
	return cell;
}

void timestamps_set_tpcs(const volatile uint64_t *timestamp, uint64_t number, unsigned int tpcs)
{
	uintptr_t first = (uintptr_t)timestamp - number % TIMESTAMPS_CELLS * sizeof(struct timestamp);
	struct timestamps_record *record = &((struct timestamps *)first)->records[number % TIMESTAMPS_CELLS];

	if (atomic_load_explicit(&record->number, memory_order_relaxed) == number)
		store(&record->tpcs, tpcs);
}

struct timestamps_cell timestamps_add_end(struct timestamps *timestamps)
{
	uint64_t number = atomic_fetch_add_explicit(&timestamps->launches, 1, memory_order_relaxed) + 1;

	return cell_of(timestamps, number % TIMESTAMPS_CELLS, number);
}

static void write_node(struct timestamps_node_record *record, uint64_t number, const struct timestamps_node *node)
{
	store(&record->number, 0);
	atomic_thread_fence(memory_order_release);
	store(&record->exec, pointer_word(node->exec));
	store(&record->function, pointer_word(node->function));
	store(&record->tpcs, node->tpcs);
	store(&record->grid, grid_word(node->grid));
	store(&record->nodes, node->nodes);
	atomic_store_explicit(&record->number, number, memory_order_release);
}

struct timestamps_cell timestamps_node_cell(uint64_t number)
{
	uint64_t cell = TIMESTAMPS_CELLS + (number & ~TIMESTAMPS_IS_NODE) % TIMESTAMPS_NODES;

	return (struct timestamps_cell){.at = cell * sizeof(struct timestamp), .number = number};
}

bool timestamps_has_node(const struct timestamps *timestamps, uint64_t number)
{
	uint64_t plain = number & ~TIMESTAMPS_IS_NODE;

	return atomic_load_explicit(&timestamps->node_records[plain % TIMESTAMPS_NODES].number, memory_order_relaxed) ==
	       plain;
}

bool timestamps_set_node(struct timestamps *timestamps, uint64_t number, const struct timestamps_node *node)
{
	uint64_t plain = number & ~TIMESTAMPS_IS_NODE;
	struct timestamps_node_record *record = &timestamps->node_records[plain % TIMESTAMPS_NODES];
	bool is_own = timestamps_has_node(timestamps, number) &&
	              atomic_load_explicit(&record->exec, memory_order_relaxed) == pointer_word(node->exec);

	if (is_own)
		write_node(record, plain, node);
	return is_own;
}

struct timestamps_cell timestamps_add_node(struct timestamps *timestamps, const struct timestamps_node *node)
{
	uint64_t number = atomic_fetch_add_explicit(&timestamps->nodes, 1, memory_order_relaxed) + 1;

	write_node(&timestamps->node_records[number % TIMESTAMPS_NODES], number, node);
	return cell_of(timestamps, TIMESTAMPS_CELLS + number % TIMESTAMPS_NODES, number | TIMESTAMPS_IS_NODE);
}

uint64_t timestamps_add_graph(struct timestamps *timestamps, const struct timestamps_graph *graph)
{
	uint64_t number;
	struct timestamps_record *record = begin_record(timestamps, &number);

	store(&record->kind, TIMESTAMPS_GRAPH);
	store(&record->launched_ns, graph->launched_ns);
	store(&record->function, graph->first & ~TIMESTAMPS_IS_NODE);
	store(&record->stream, graph->stream);
	store(&record->tpcs, graph->kernels);
	store(&record->grid, pointer_word(graph->exec));
	store(&record->nodes, (uint32_t)(graph->last - graph->first) | (graph->end - graph->first) << 32);
	end_record(record, number);
	return number;
}

void timestamps_note_gap(struct timestamps *timestamps, enum timestamps_gap gap)
{
	atomic_fetch_or_explicit(&timestamps->gaps, UINT64_C(1) << gap, memory_order_relaxed);
}

void timestamps_begin(struct timestamps *timestamps, bool is_shared_by_mps)
{
	store(&timestamps->gaps, 0);
	store(&timestamps->is_shared_by_mps, is_shared_by_mps);
}

void timestamps_end(struct timestamps *timestamps)
{
	store(&timestamps->gone, atomic_load(&timestamps->launches));
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* The rings with the names of functions: a hash table by the functions' addresses. An entry belongs to a function for
 * ever. */
#define KNOWN (4 * TIMESTAMPS_FUNCTIONS)

static struct known_name {
	_Atomic uint64_t function;
	_Atomic uint64_t generation;
	_Atomic(struct timestamps *) ring;
	uint64_t entry; /* in the ring's list; under is_naming */
} known[KNOWN];

/* Names of an older generation are asked for again. */
static _Atomic uint64_t generation = 1;

/* One thread at a time writes names; a second thread leaves the name to its next launch. */
static atomic_flag is_naming = ATOMIC_FLAG_INIT;

void timestamps_forget_names(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

/* The entry of a function, or a free entry. NULL if the table is full. Runs in every launch while a watcher looks. */
static inline __attribute__((always_inline)) struct known_name *locate(const void *function)
{
	size_t start = (size_t)(pointer_word(function) * UINT64_C(0x9e3779b97f4a7c15) >> 32), tried = 0;
	struct known_name *found = NULL;

	while (!found && tried < KNOWN) {
		struct known_name *name = &known[(start + tried++) % KNOWN];
		uint64_t there = atomic_load_explicit(&name->function, memory_order_acquire);

		if (there == 0 || there == pointer_word(function))
			found = name;
	}
	return found;
}

bool timestamps_want_name(const struct timestamps *timestamps, const void *function)
{
	const struct known_name *name = locate(function);

	return name && (atomic_load_explicit(&name->ring, memory_order_relaxed) != timestamps ||
	                atomic_load_explicit(&name->generation, memory_order_relaxed) !=
	                        atomic_load_explicit(&generation, memory_order_relaxed));
}

/* Whether the name is there already. Hostile processes may write to this memory: no content is believed. */
static bool has_name(const struct timestamps_names *names, uint64_t entry, const void *function, const char *text,
                     size_t length)
{
	if (entry >= TIMESTAMPS_FUNCTIONS || atomic_load(&names->list[entry].function) != pointer_word(function))
		return false;
	uint64_t begin = atomic_load(&names->list[entry].begin);

	return atomic_load(&names->list[entry].length) == length && begin <= TIMESTAMPS_TEXT - length &&
	       memcmp(names->text + begin, text, length) == 0;
}

/* Without room, the function stays nameless. */
static uint64_t add_name(struct timestamps_names *names, const void *function, const char *text, size_t length)
{
	uint64_t entry = atomic_load(&names->count), begin = 0;

	if (entry > 0 && entry < TIMESTAMPS_FUNCTIONS)
		begin = atomic_load(&names->list[entry - 1].begin) + atomic_load(&names->list[entry - 1].length);
	if (entry < TIMESTAMPS_FUNCTIONS && begin <= TIMESTAMPS_TEXT - length) {
		memcpy(names->text + begin, text, length);
		store(&names->list[entry].function, pointer_word(function));
		store(&names->list[entry].begin, begin);
		store(&names->list[entry].length, length);
		atomic_store_explicit(&names->count, entry + 1, memory_order_release);
	}
	return entry;
}

void timestamps_name(struct timestamps *timestamps, const void *function, const char *text)
{
	size_t length = text ? strnlen(text, TIMESTAMPS_NAME_MAX) : 0;

	if (atomic_flag_test_and_set_explicit(&is_naming, memory_order_acquire))
		return;
	struct known_name *name = locate(function);

	if (name) {
		bool is_there = length > 0 && atomic_load(&name->ring) == timestamps &&
		                has_name(&timestamps->names, name->entry, function, text, length);

		if (length > 0 && !is_there)
			name->entry = add_name(&timestamps->names, function, text, length);
		store(&name->generation, atomic_load_explicit(&generation, memory_order_relaxed));
		atomic_store_explicit(&name->ring, timestamps, memory_order_relaxed);
		atomic_store_explicit(&name->function, pointer_word(function), memory_order_release);
	}
	atomic_flag_clear_explicit(&is_naming, memory_order_release);
}

/* --- areas ------------------------------------------------------------------------------------------------------ */

const struct area_kind timestamps_area_kind = {TIMESTAMPS_NAME, TIMESTAMPS_MAGIC, TIMESTAMPS_VERSION,
                                               sizeof(struct timestamps_memory)};

struct timestamps *timestamps_take(struct timestamps_areas *areas, const struct segment *segment, unsigned int number,
                                   struct pci_address pci, uint64_t reach, struct error *error)
{
	struct area *area = &areas->list[number / COUNTS_PLACES];

	if (!area->memory) {
		if (area_make(area, &timestamps_area_kind, reach, error) < 0)
			return NULL;
		area_name(area, &segment->memory->timestamps[number / COUNTS_PLACES]);
	}
	struct timestamps *timestamps = &((struct timestamps_memory *)area->memory)->rings[number % COUNTS_PLACES];

	timestamps->pci = pci;
	atomic_store_explicit(&timestamps->magic, TIMESTAMPS_MAGIC, memory_order_release);
	return timestamps;
}

void timestamps_after_fork(struct timestamps_areas *areas)
{
	for (unsigned int i = 0; i < SEGMENT_AREAS; i++)
		area_leave(&areas->list[i], &timestamps_area_kind);
	memset(known, 0, sizeof known);
	atomic_flag_clear(&is_naming);
}
