#include "events.h"

#include "base/clock.h"
#include "base/ring.h"
#include "layout.h"

#include <string.h>

uint64_t segment_watched_ns(const struct segment *segment)
{
	uint64_t end = atomic_load_explicit(&segment->memory->lease, memory_order_acquire);
	uint64_t now = end != 0 ? process_clock_ns() : 0;

	return segment_lease_covers(end, now) ? now : 0;
}

_Static_assert(sizeof(struct segment_event) == SEGMENT_EVENT_WORDS * sizeof(uint64_t), "shared layout");

/* No second writer writes to a place at the same time: the event is lost. */
void segment_note(const struct segment *segment, const struct segment_event *event)
{
	uint64_t words[SEGMENT_EVENT_WORDS];

	if (!segment || !segment->memory || !segment_is_watched(segment))
		return;
	struct segment_events *events = &segment->memory->events;
	uint64_t number = atomic_fetch_add_explicit(&events->last, 1, memory_order_relaxed) + 1;
	struct segment_noted *place = &events->ring[number % SEGMENT_EVENTS];

	if (atomic_exchange(&place->number, SEGMENT_BEING_WRITTEN) != SEGMENT_BEING_WRITTEN) {
		memcpy(words, event, sizeof words);
		ring_fill(place->words, words, SEGMENT_EVENT_WORDS);
		atomic_store_explicit(&place->number, number, memory_order_release);
	}
}

/* A hostile owner may tell any number. */
void segment_read_events(const struct segment *segment, struct segment_events_read *read)
{
	const struct segment_events *events = &segment->memory->events;
	uint64_t last = atomic_load_explicit(&events->last, memory_order_acquire);
	uint64_t came = last > read->last ? last - read->last : 0;
	uint64_t next = last - (came < SEGMENT_EVENTS ? came : SEGMENT_EVENTS);
	uint64_t words[SEGMENT_EVENT_WORDS];

	read->count = 0;
	while (next < last) {
		const struct segment_noted *place = &events->ring[++next % SEGMENT_EVENTS];
		bool is_there = atomic_load_explicit(&place->number, memory_order_acquire) == next;

		ring_copy(words, place->words, SEGMENT_EVENT_WORDS);
		memcpy(&read->list[read->count], words, sizeof words);
		read->count += is_there && ring_is_whole(&place->number, next, 2);
	}
	read->lost = came - read->count;
	read->last = last;
}
