#include "stamps_read.h"

#include <string.h>

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static uint64_t load_relaxed(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* --- what is done ----------------------------------------------------------------------------------------------- */

static bool is_done(const struct stamps_reader *reader, uint64_t number)
{
	return number <= reader->read || reader->done[number % STAMPS_CELLS / 64] >> (number % 64) & 1;
}

/* Of the numbers that are within a ring's length of `read`. */
static void set_done(struct stamps_reader *reader, uint64_t number)
{
	reader->done[number % STAMPS_CELLS / 64] |= UINT64_C(1) << (number % 64);
	while (reader->done[(reader->read + 1) % STAMPS_CELLS / 64] >> ((reader->read + 1) % 64) & 1) {
		reader->read++;
		reader->done[reader->read % STAMPS_CELLS / 64] &= ~(UINT64_C(1) << (reader->read % 64));
	}
}

/* All up to this number are done. Returns how many were not. */
static uint64_t skip_to(struct stamps_reader *reader, uint64_t number)
{
	uint64_t within = reader->read + STAMPS_CELLS, missed = 0;

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

/* The last launch. No process ever comes to more than half of all numbers. */
static uint64_t last_of(const struct stamps *ring)
{
	uint64_t last = load(&ring->launches);

	return last < STAMPS_IS_NODE ? last : 0;
}

void stamps_reader_begin(struct stamps_reader *reader, const struct stamps *ring)
{
	*reader = (struct stamps_reader){.ring = ring, .read = last_of(ring)};
	reader->looked = reader->read;
}

/* --- one launch ------------------------------------------------------------------------------------------------- */

enum found {
	FOUND_EVENT,
	FOUND_NOTHING,   /* it will never end */
	FOUND_TOO_EARLY, /* it is not written yet */
	FOUND_TOO_LATE   /* it is overwritten */
};

static bool is_written(const struct stamps_record *record, uint64_t number)
{
	return load(&record->number) == number;
}

/* Whether it has ended. The hardware may write one of the two words first. */
static bool read_stamp(const struct stamps_stamp *stamp, uint64_t number, uint64_t *time)
{
	bool is_there = load(&stamp->number) == number;

	*time = is_there ? load(&stamp->time) : 0;
	return *time != 0;
}

static enum found read_launch(const struct stamps *ring, uint64_t number, struct stamps_event *event)
{
	const struct stamps_record *record = &ring->records[number % STAMPS_CELLS];
	uint64_t there = load(&record->number), kind;

	if (there != number)
		return there > number ? FOUND_TOO_LATE : FOUND_TOO_EARLY;
	kind = load_relaxed(&record->kind);
	*event = (struct stamps_event){
		.state = STAMPS_RUNNING,
		.number = number,
		.launched_ns = load_relaxed(&record->launched_ns),
		.function = load_relaxed(&record->function),
		.stream = load_relaxed(&record->stream),
		.tpcs = (unsigned int)load_relaxed(&record->tpcs),
	};
	if (kind == STAMPS_GRAPH) {
		event->state = STAMPS_GRAPH_LAUNCHED;
		uint64_t behind = load_relaxed(&record->nodes);

		event->exec = load_relaxed(&record->exec);
		event->first = event->function;
		event->last = event->first + (uint32_t)behind;
		event->end = event->first + (behind >> 32);
	} else if (read_stamp(&ring->cells[number % STAMPS_CELLS], number, &event->stamp_ns)) {
		event->state = STAMPS_ENDED;
	}
	atomic_thread_fence(memory_order_acquire);
	if (!is_written(record, number))
		return FOUND_TOO_LATE;
	bool never = kind != STAMPS_LAUNCH && kind != STAMPS_GRAPH;

	if (event->state == STAMPS_RUNNING && (never || number <= load(&ring->gone)))
		return FOUND_NOTHING;
	return FOUND_EVENT;
}

/* A record that was never written has number 0. */
bool stamps_read_launch(const struct stamps *ring, uint64_t number, struct stamps_event *event)
{
	return number != 0 && read_launch(ring, number, event) == FOUND_EVENT;
}

/* --- scanning --------------------------------------------------------------------------------------------------- */

uint64_t stamps_scan(struct stamps_reader *reader, unsigned int running, stamps_visitor *visit, void *data)
{
	uint64_t last = last_of(reader->ring), lost = 0, looked = reader->looked;

	if (last < reader->read) /* it is hostile */
		stamps_reader_begin(reader, reader->ring);
	if (last > reader->read && last - reader->read > STAMPS_CELLS)
		lost = skip_to(reader, last - STAMPS_CELLS);
	for (uint64_t number = reader->read + 1; number <= last && running > 0; number++) {
		struct stamps_event event;
		enum found found = is_done(reader, number) ? FOUND_NOTHING : read_launch(reader->ring, number, &event);
		bool is_running = found == FOUND_EVENT && event.state == STAMPS_RUNNING;

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

uint64_t stamps_oldest(const struct stamps_reader *reader)
{
	uint64_t last = last_of(reader->ring), time = 0;
	uint64_t first = last > STAMPS_CELLS ? last - STAMPS_CELLS + 1 : 1;

	/* The oldest may be overwritten just now. */
	for (uint64_t number = first; number <= last && time == 0; number++) {
		const struct stamps_record *record = &reader->ring->records[number % STAMPS_CELLS];

		time = load_relaxed(&record->launched_ns);
		atomic_thread_fence(memory_order_acquire);
		time = is_written(record, number) ? time : 0;
	}
	return time;
}

void stamps_give_up(struct stamps_reader *reader)
{
	skip_to(reader, reader->looked);
}

/* --- nodes and names -------------------------------------------------------------------------------------------- */

bool stamps_read_node(const struct stamps *ring, uint64_t number, struct stamps_node_event *event)
{
	const struct stamps_node_record *record = &ring->node_records[number % STAMPS_NODES];

	if (load(&record->number) != number)
		return false;
	event->number = number;
	event->exec = load_relaxed(&record->exec);
	event->function = load_relaxed(&record->function);
	event->tpcs = (unsigned int)load_relaxed(&record->tpcs);
	event->is_break = load_relaxed(&record->nodes) != 0;
	read_stamp(&ring->cells[STAMPS_CELLS + number % STAMPS_NODES], number | STAMPS_IS_NODE, &event->stamp_ns);
	atomic_thread_fence(memory_order_acquire);
	return load(&record->number) == number;
}

uint64_t stamps_read_function(const struct stamps *ring, uint64_t number, uint64_t exec, uint64_t *function)
{
	const struct stamps_node_record *record = &ring->node_records[number % STAMPS_NODES];

	if (load(&record->number) != number || load_relaxed(&record->exec) != exec)
		return 0;
	uint64_t nodes = load_relaxed(&record->nodes);

	*function = load_relaxed(&record->function);
	atomic_thread_fence(memory_order_acquire);
	return load(&record->number) == number ? nodes : 0;
}

unsigned int stamps_names_count(const struct stamps *ring)
{
	uint64_t count = load(&ring->names.count);

	return count < STAMPS_FUNCTIONS ? (unsigned int)count : STAMPS_FUNCTIONS;
}

bool stamps_read_name(const struct stamps *ring, unsigned int entry, uint64_t *function, char name[STAMPS_NAME_MAX + 1])
{
	if (entry >= stamps_names_count(ring))
		return false;
	uint64_t begin = load(&ring->names.list[entry].begin), length = load(&ring->names.list[entry].length);

	*function = load(&ring->names.list[entry].function);
	if (length == 0 || length > STAMPS_NAME_MAX || begin > STAMPS_TEXT - length)
		return false;
	memcpy(name, ring->names.text + begin, length);
	name[length] = '\0';
	return strlen(name) == length;
}
