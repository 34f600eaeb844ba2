/* Events in a segment (src/state/segment/events.h): written while a watcher looks, bounded, read whole or lost. */
#include "own_segment.h"

#include "base/clock.h"
#include "state/segment/layout.h"
#include "state/segment/events.h"

#include <pthread.h>

static struct segment_events_read all;
static const struct segment_event *const list = all.list;

FIXTURE(begin)
{
	all.last = atomic_load(&owner.memory->events.last);
	atomic_store(&owner.memory->lease, process_clock_ns() + LEASE_NS);
}

static size_t read_events(void)
{
	segment_read_events(&owner, &all);
	return all.count;
}

static void note(uint32_t number)
{
	segment_note(&owner, &(const struct segment_event){SEGMENT_BORROWS, number, number, number + 1, first, number});
}

static bool is_whole(const struct segment_event *event)
{
	return event->kind == SEGMENT_BORROWS && event->begin_ns == event->tpcs && event->end_ns == event->tpcs + 1u &&
	       event->other == event->tpcs && pci_address_equal(event->pci, first);
}

TEST(each_is_read_once)
{
	note(1);
	note(2);
	assert_each(read_events(), 2, all.lost, 0, list[0].tpcs, 1, list[1].tpcs, 2);
	assert_true(is_whole(&list[0]) && is_whole(&list[1]));
	note(3);
	assert_each(read_events(), 1, all.lost, 0, list[0].tpcs, 3, read_events(), 0);
}

TEST(nothing_while_nobody_looks)
{
	atomic_store(&owner.memory->lease, 0);
	note(1);
	segment_note(NULL, &list[0]);
	assert_each(read_events(), 0, all.lost, 0, atomic_load(&owner.memory->events.last), all.last);
}

TEST(a_slow_reader_learns_how_many_are_lost)
{
	for (uint32_t i = 1; i <= SEGMENT_EVENTS + 3; i++)
		note(i);
	assert_each(read_events(), SEGMENT_EVENTS, all.lost, 3, list[0].tpcs, 4);
}

/* A writer has died in the middle: no other writer uses the place. */
TEST(half_an_event)
{
	_Atomic uint64_t *there = &owner.memory->events.ring[(all.last + 1) % SEGMENT_EVENTS].number;

	note(1);
	note(2);
	atomic_store(there, SEGMENT_BEING_WRITTEN);
	assert_each(read_events(), 1, all.lost, 1, list[0].tpcs, 2);
	for (uint32_t i = 1; i <= SEGMENT_EVENTS; i++)
		note(i);
	assert_each(read_events(), SEGMENT_EVENTS - 1, all.lost, 1);
	atomic_store(there, 0);
}

TEST(hostile_numbers)
{
	static const uint64_t numbers[] = {0, 1, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};

	for (size_t i = 0; i < COUNT_OF(numbers) * COUNT_OF(numbers); i++) {
		all.last = numbers[i / COUNT_OF(numbers)];
		atomic_store(&owner.memory->events.last, numbers[i % COUNT_OF(numbers)]);
		assert_true(read_events() <= SEGMENT_EVENTS);
		assert_int_equal(all.last, numbers[i % COUNT_OF(numbers)]);
	}
	atomic_store(&owner.memory->events.last, 0);
}

/* --- several writers ---------------------------------------------------------------------------------------------- */

#define WRITERS 3
#define NOTES 20000

static void *write_notes(void *unused)
{
	for (uint32_t i = 1; i <= NOTES; i++)
		note(i);
	return unused;
}

TEST(writers_at_once)
{
	pthread_t writers[WRITERS];
	uint64_t found = 0, missed = 0, before = all.last;

	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i], NULL, write_notes, NULL), 0);
	while (found + missed < WRITERS * NOTES) {
		size_t count = read_events();

		for (size_t i = 0; i < count; i++)
			assert_true(is_whole(&list[i]));
		found += count;
		missed += all.lost;
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	assert_true(found > 0 && all.last == before + WRITERS * NOTES);
}

RUN_TESTS_IN(make_owner, close_owner, begin, NULL)
