#include "timestamps_read.h"

#include <string.h>

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static uint64_t load_relaxed(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static struct qmd_grid load_grid(const _Atomic uint64_t *word)
{
	uint64_t value = load_relaxed(word);
	struct qmd_grid grid;

	memcpy(&grid, &value, sizeof grid);
	return grid;
}

/* --- done launches ------------------------------------------------------------------------------------------------ */

static bool is_done(const struct timestamps_reader *reader, uint64_t number)
{
	return number <= reader->read || reader->done[number % TIMESTAMPS_CELLS / 64] >> (number % 64) & 1;
}

/* For numbers within a ring's length of `read`. */
static void set_done(struct timestamps_reader *reader, uint64_t number)
{
	reader->done[number % TIMESTAMPS_CELLS / 64] |= UINT64_C(1) << (number % 64);
	while (reader->done[(reader->read + 1) % TIMESTAMPS_CELLS / 64] >> ((reader->read + 1) % 64) & 1) {
		reader->read++;
		reader->done[reader->read % TIMESTAMPS_CELLS / 64] &= ~(UINT64_C(1) << (reader->read % 64));
	}
}

/* Marks all up to `number` as done. Returns how many were not. */
static uint64_t skip_to(struct timestamps_reader *reader, uint64_t number)
{
	uint64_t within = reader->read + TIMESTAMPS_CELLS, missed = 0;

	if (number > within) {
		missed = number - within;
		for (uint64_t i = reader->read + 1; i <= within; i++)
			missed += !is_done(reader, i);
		memset(reader->done, 0, sizeof reader->done);
		reader->read = number;
	}
	while (reader->read < number) {
		missed++;
		set_done(reader, reader->read + 1);
	}
	return missed;
}

/* The last launch. No process reaches half of all numbers. */
static uint64_t last_of(const struct timestamps *ring)
{
	uint64_t last = load(&ring->launches);

	return last < TIMESTAMPS_IS_NODE ? last : 0;
}

void timestamps_reader_begin(struct timestamps_reader *reader, const struct timestamps *ring)
{
	*reader = (struct timestamps_reader){.ring = ring, .read = last_of(ring)};
	reader->looked = reader->read;
}

/* --- a launch ----------------------------------------------------------------------------------------------------- */

enum found {
	FOUND_EVENT,
	FOUND_NOTHING,   /* will never end */
	FOUND_TOO_EARLY, /* not yet written */
	FOUND_TOO_LATE   /* overwritten */
};

static bool is_written(const struct timestamps_record *record, uint64_t number)
{
	return load(&record->number) == number;
}

/* Whether the launch has ended. The GPU may write either word first. */
static bool read_timestamp(const struct timestamp *timestamp, uint64_t number, uint64_t *time)
{
	bool is_there = load(&timestamp->number) == number;

	*time = is_there ? load(&timestamp->time) : 0;
	return *time != 0;
}

static enum found read_launch(const struct timestamps *ring, uint64_t number, struct timestamps_event *event)
{
	const struct timestamps_record *record = &ring->records[number % TIMESTAMPS_CELLS];
	uint64_t there = load(&record->number), kind;

	if (there != number)
		return there > number ? FOUND_TOO_LATE : FOUND_TOO_EARLY;
	kind = load_relaxed(&record->kind);
	*event = (struct timestamps_event){
		.state = TIMESTAMPS_RUNNING,
		.number = number,
		.launched_ns = load_relaxed(&record->launched_ns),
		.function = load_relaxed(&record->function),
		.stream = load_relaxed(&record->stream),
		.tpcs = (unsigned int)load_relaxed(&record->tpcs),
	};
	if (kind == TIMESTAMPS_GRAPH) {
		event->state = TIMESTAMPS_GRAPH_LAUNCHED;
		uint64_t behind = load_relaxed(&record->nodes);

		event->exec = load_relaxed(&record->grid);
		event->first = event->function;
		event->last = event->first + (uint32_t)behind;
		event->end = event->first + (behind >> 32);
	} else {
		event->grid = load_grid(&record->grid);
		if (read_timestamp(&ring->cells[number % TIMESTAMPS_CELLS], number, &event->timestamp_ns))
			event->state = TIMESTAMPS_ENDED;
	}
	atomic_thread_fence(memory_order_acquire);
	if (!is_written(record, number))
		return FOUND_TOO_LATE;
	bool never = kind != TIMESTAMPS_LAUNCH && kind != TIMESTAMPS_GRAPH;

	if (event->state == TIMESTAMPS_RUNNING && (never || number <= load(&ring->gone)))
		return FOUND_NOTHING;
	return FOUND_EVENT;
}

/* A record that was never written has number 0. */
bool timestamps_read_launch(const struct timestamps *ring, uint64_t number, struct timestamps_event *event)
{
	return number != 0 && read_launch(ring, number, event) == FOUND_EVENT;
}

/* --- scanning --------------------------------------------------------------------------------------------------- */

uint64_t timestamps_scan(struct timestamps_reader *reader, unsigned int running, timestamps_visitor *visit, void *data)
{
	uint64_t last = last_of(reader->ring), lost = 0, looked = reader->looked;

	if (last < reader->read) /* a hostile owner */
		timestamps_reader_begin(reader, reader->ring);
	if (last > reader->read && last - reader->read > TIMESTAMPS_CELLS)
		lost = skip_to(reader, last - TIMESTAMPS_CELLS);
	for (uint64_t number = reader->read + 1; number <= last && running > 0; number++) {
		struct timestamps_event event;
		enum found found = is_done(reader, number) ? FOUND_NOTHING : read_launch(reader->ring, number, &event);
		bool is_running = found == FOUND_EVENT && event.state == TIMESTAMPS_RUNNING;

		if (found == FOUND_EVENT) {
			event.was_looked_at = number <= reader->looked;
			visit(&event, data);
		}
		if (found == FOUND_TOO_LATE)
			lost++;
		if (!is_running && found != FOUND_TOO_EARLY && !is_done(reader, number))
			set_done(reader, number);
		running -= is_running;
		looked = number > looked ? number : looked;
	}
	reader->looked = looked;
	return lost;
}

uint64_t timestamps_oldest(const struct timestamps_reader *reader)
{
	uint64_t last = last_of(reader->ring), time = 0;
	uint64_t first = last > TIMESTAMPS_CELLS ? last - TIMESTAMPS_CELLS + 1 : 1;

	/* The oldest record may be overwritten just now. */
	for (uint64_t number = first; number <= last && time == 0; number++) {
		const struct timestamps_record *record = &reader->ring->records[number % TIMESTAMPS_CELLS];

		time = load_relaxed(&record->launched_ns);
		atomic_thread_fence(memory_order_acquire);
		time = is_written(record, number) ? time : 0;
	}
	return time;
}

void timestamps_give_up(struct timestamps_reader *reader)
{
	skip_to(reader, reader->looked);
}

/* --- nodes and names -------------------------------------------------------------------------------------------- */

bool timestamps_read_node(const struct timestamps *ring, uint64_t number, struct timestamps_node_event *event)
{
	const struct timestamps_node_record *record = &ring->node_records[number % TIMESTAMPS_NODES];

	if (load(&record->number) != number)
		return false;
	event->number = number;
	event->exec = load_relaxed(&record->exec);
	event->function = load_relaxed(&record->function);
	event->tpcs = (unsigned int)load_relaxed(&record->tpcs);
	event->grid = load_grid(&record->grid);
	event->is_break = load_relaxed(&record->nodes) != 0;
	read_timestamp(&ring->cells[TIMESTAMPS_CELLS + number % TIMESTAMPS_NODES], number | TIMESTAMPS_IS_NODE,
	               &event->timestamp_ns);
	atomic_thread_fence(memory_order_acquire);
	return load(&record->number) == number;
}

uint64_t timestamps_read_function(const struct timestamps *ring, uint64_t number, uint64_t exec, uint64_t *function)
{
	const struct timestamps_node_record *record = &ring->node_records[number % TIMESTAMPS_NODES];

	if (load(&record->number) != number || load_relaxed(&record->exec) != exec)
		return 0;
	uint64_t nodes = load_relaxed(&record->nodes);

	*function = load_relaxed(&record->function);
	atomic_thread_fence(memory_order_acquire);
	return load(&record->number) == number ? nodes : 0;
}

unsigned int timestamps_names_count(const struct timestamps *ring)
{
	uint64_t count = load(&ring->names.count);

	return count < TIMESTAMPS_FUNCTIONS ? (unsigned int)count : TIMESTAMPS_FUNCTIONS;
}

bool timestamps_read_name(const struct timestamps *ring, unsigned int entry, uint64_t *function,
                          char name[TIMESTAMPS_NAME_MAX + 1])
{
	if (entry >= timestamps_names_count(ring))
		return false;
	uint64_t begin = load(&ring->names.list[entry].begin), length = load(&ring->names.list[entry].length);

	*function = load(&ring->names.list[entry].function);
	if (length == 0 || length > TIMESTAMPS_NAME_MAX || begin > TIMESTAMPS_TEXT - length)
		return false;
	memcpy(name, ring->names.text + begin, length);
	name[length] = '\0';
	return strlen(name) == length;
}
