/* The ring whose values are published by a number. */
#include "../cases.h"
#include "base/ring.h"

#define PLACES 4
#define WORDS 8

static struct {
	_Atomic uint64_t number;
	_Atomic uint64_t places[PLACES][WORDS];
} ring;

/* Every word of value n is n. */
static void publish(uint64_t value)
{
	uint64_t words[WORDS], next = atomic_load(&ring.number) + 1;

	for (int word = 0; word < WORDS; word++)
		words[word] = value;
	ring_fill(ring.places[next % PLACES], words, WORDS);
	atomic_store_explicit(&ring.number, next, memory_order_release);
}

/* As soon as the place that a reader copies is the next to be written, a writer may be filling it. */
TEST(knows_when_writers_came_round)
{
	publish(1);
	uint64_t seen = atomic_load(&ring.number);

	for (int edits = 0; edits < PLACES - 1; edits++) {
		assert_true(ring_is_whole(&ring.number, seen, PLACES));
		publish(2);
	}
	/* Also after many edits. */
	for (int edits = 0; edits < 3 * PLACES; edits++) {
		assert_false(ring_is_whole(&ring.number, seen, PLACES));
		publish(2);
	}
}

static atomic_bool done;

static void *publish_many(void *data)
{
	for (uint64_t value = 0; value < 200000; value++)
		publish(value);
	atomic_store(&done, true);
	return NULL;
}

TEST(reads_no_halves_while_another_writes)
{
	uint64_t words[WORDS];
	pthread_t writer = thread_start(publish_many, NULL);

	while (!atomic_load(&done)) {
		uint64_t seen = atomic_load_explicit(&ring.number, memory_order_acquire);

		ring_copy(words, ring.places[seen % PLACES], WORDS);
		bool is_whole = ring_is_whole(&ring.number, seen, PLACES);

		for (int word = 1; is_whole && word < WORDS; word++)
			assert_int_equal(words[word], words[0]);
	}
	pthread_join(writer, NULL);
}

RUN_TESTS(NULL, NULL)
