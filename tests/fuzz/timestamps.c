/*
 * Any content in the memory that a process shares for its times. A watcher reads it again and again, while it changes:
 * its work is bounded, it reads nothing outside of that memory, and what it says of lengths cannot be more than the
 * time that passed.
 */
#include "fuzz.h"

#include "monitor/estimate/graph_times.h"
#include "monitor/estimate/times.h"
#include "state/kernels/timestamps_read.h"

#include <string.h>

#define CHUNK 64

static struct timestamps *ring;
static struct timestamps_reader reader;

/* Words of the input go to places that the input names, near what a reader looks at. Returns how much of the input it used. */
static size_t write_one(const uint8_t *data, size_t size)
{
	const struct {
		void *list;
		size_t each, count;
	} places[] = {
		{&ring->launches, 8, 1}, {&ring->nodes, 8, 1}, {&ring->gone, 8, 1}, {&ring->names.count, 8, 1},
		{ring->names.list, sizeof ring->names.list[0], TIMESTAMPS_FUNCTIONS},
		{ring->records, sizeof ring->records[0], TIMESTAMPS_CELLS},
		{ring->node_records, sizeof ring->node_records[0], TIMESTAMPS_NODES},
		{ring->cells, sizeof ring->cells[0], TIMESTAMPS_CELLS + TIMESTAMPS_NODES},
	}, *place = &places[size > 0 ? data[0] % 8 : 0];
	uint64_t number;

	if (size < 9)
		return size;
	memcpy(&number, data + 1, sizeof number);
	size_t length = size - 9 < place->each ? size - 9 : place->each;

	memcpy((uint8_t *)place->list + number % place->count * place->each, data + 9, length);
	return 9 + length;
}

struct visit {
	struct times *times;
	uint64_t last, visits;
};

static const struct node_order *order_of(void *data, const struct timestamps_event *graph)
{
	static struct node_order order;

	order.latest = graph->first;
	return graph->exec % 2 ? &order : NULL;
}

static void on_event(const struct timestamps_event *event, void *data)
{
	struct visit *visit = data;
	struct times_kernel kernel = {.stream = event->stream, .launched_ns = event->launched_ns,
	                              .timestamp_ns = event->timestamp_ns, .tpcs = event->tpcs};
	uint64_t duration;

	must(event->number > visit->last);
	visit->last = event->number;
	visit->visits++;
	times_compare(visit->times, &kernel, event->was_looked_at, event->launched_ns);
	graph_times_before(&kernel, ring, event, order_of, NULL);
	if (event->state == TIMESTAMPS_ENDED)
		times_add(visit->times, &kernel, &duration);
	else
		times_add_running(visit->times, &kernel, 1000);
}

static void read_all(struct times *times, uint64_t now)
{
	struct visit visit = {.times = times};
	struct times_taken taken;
	struct timestamps_node_event node;
	char name[TIMESTAMPS_NAME_MAX + 1];
	uint64_t function, before = reader.read;
	uint64_t lost = timestamps_scan(&reader, TIMESTAMPS_CELLS, on_event, &visit);

	must(visit.visits <= TIMESTAMPS_CELLS && lost < TIMESTAMPS_IS_NODE + TIMESTAMPS_CELLS);
	must(reader.read >= before || atomic_load(&ring->launches) < before || atomic_load(&ring->launches) >= TIMESTAMPS_IS_NODE);
	timestamps_oldest(&reader);
	if (now % 3 == 0)
		timestamps_give_up(&reader);
	for (uint64_t number = 0; number < 2 * TIMESTAMPS_NODES; number += 61) {
		timestamps_read_node(ring, number, &node);
		timestamps_read_function(ring, number, now, &function);
	}
	must(timestamps_names_count(ring) <= TIMESTAMPS_FUNCTIONS);
	for (unsigned int entry = 0; entry <= timestamps_names_count(ring); entry++)
		must(!timestamps_read_name(ring, entry, &function, name) || (name[0] && strlen(name) <= TIMESTAMPS_NAME_MAX));
	times_take(times, now, &taken);
	must(taken.busy_ns <= taken.span_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct times times;
	uint64_t now = 0;

	if (!ring)
		ring = aligned_alloc(COUNTS_PAGE, sizeof *ring);
	must(ring);
	memset(ring, 0, sizeof *ring);
	reader = (struct timestamps_reader){.ring = ring};
	times_open(&times, &times_usual, 0);
	while (size > 0) {
		for (int i = 0; i < CHUNK && size > 0; i++) {
			size_t used = write_one(data, size);

			data += used;
			size -= used;
		}
		read_all(&times, now += 1000);
	}
	times_close(&times);
	return 0;
}
