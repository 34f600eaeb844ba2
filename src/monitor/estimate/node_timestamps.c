#include "node_timestamps.h"

#include <limits.h>
#include <stdlib.h>

#define NONE UINT_MAX

/* Timestamps may be written while they are read. */
#define TRIES 3

static int compare(const void *a, const void *b)
{
	const struct timestamps_node_event *one = a, *other = b;

	return (one->timestamp_ns > other->timestamp_ns) - (one->timestamp_ns < other->timestamp_ns);
}

static void read_all(struct node_timestamps *timestamps, const struct timestamps *ring, uint64_t exec, uint64_t first,
                     uint64_t last)
{
	timestamps->count = timestamps->waiting = 0;
	timestamps->has_all = true;
	for (uint64_t number = first; number <= last; number++) {
		struct timestamps_node_event node;

		if (!timestamps_read_node(ring, number, &node) || node.exec != exec)
			continue;
		if (node.is_break)
			timestamps->has_all = false;
		else if (node.timestamp_ns == 0)
			timestamps->waiting++;
		else
			timestamps->nodes[timestamps->count++] = node;
	}
	qsort(timestamps->nodes, timestamps->count, sizeof timestamps->nodes[0], compare);
}

static unsigned int find(const struct node_timestamps *timestamps, uint64_t number)
{
	unsigned int index = 0;

	while (index < timestamps->count && timestamps->nodes[index].number != number)
		index++;
	return index < timestamps->count ? index : NONE;
}

/* The driver has kernels of its own also in place of disabled nodes. */
static unsigned int find_front(const struct node_timestamps *timestamps, const struct node_order *order)
{
	unsigned int found = NONE, count = 0;

	for (unsigned int i = 0; i < timestamps->count; i++) {
		if (timestamps->nodes[i].function == 0) {
			found = i;
			count++;
		}
	}
	if (timestamps->count <= 1 || count == 0)
		found = NONE;
	else if (count > 1)
		found = find(timestamps, order->front);
	return found;
}

/* Whether they have the same timestamps as before, up to this index: then those that are behind it are newer. */
static bool are_unchanged(const struct node_timestamps *timestamps, const struct timestamps *ring, unsigned int index)
{
	bool are = true;

	for (unsigned int i = 0; i <= index && are; i++) {
		struct timestamps_node_event again;

		are = timestamps_read_node(ring, timestamps->nodes[i].number, &again) &&
		      again.timestamp_ns == timestamps->nodes[i].timestamp_ns;
	}
	return are;
}

/* The index of the last node of the last launch that has ended; NONE if that is not known. */
static unsigned int find_end(struct node_timestamps *timestamps, const struct node_order *order, bool is_idle)
{
	bool have_all = timestamps->waiting == 0;
	unsigned int end;

	if (have_all && timestamps->front != NONE) {
		timestamps->newer = timestamps->front;
		end = timestamps->newer > 0 ? timestamps->newer - 1 : timestamps->count - 1;
	} else if (is_idle || (have_all && timestamps->count == 1)) {
		timestamps->newer = 0;
		end = timestamps->count - 1;
	} else {
		end = find(timestamps, order->latest);
		timestamps->newer = end != NONE ? end + 1 : 0;
	}
	return end;
}

static void learn(struct node_timestamps *timestamps, struct node_order *order, unsigned int end, bool is_idle)
{
	const struct timestamps_node_event *last = &timestamps->nodes[end], *oldest = &timestamps->nodes[0];

	if (is_idle && timestamps->front == NONE && end > 0 && oldest->function == 0) {
		timestamps->front = 0;
		order->front = oldest->number;
	}
	order->latest = last->number;
	timestamps->end = last->timestamp_ns;
	timestamps->tpcs = last->tpcs;
	timestamps->begin = timestamps->front == 0 ? oldest->timestamp_ns : 0;
}

bool node_timestamps_read(struct node_timestamps *timestamps, const struct timestamps *ring, uint64_t exec,
                          uint64_t first, uint64_t last, bool is_idle, struct node_order *order)
{
	unsigned int end = NONE;
	bool is_settled = false;

	for (int tries = 0; tries < TRIES && !is_settled; tries++) {
		read_all(timestamps, ring, exec, first, last);
		if (timestamps->count == 0)
			return false;
		timestamps->front = find_front(timestamps, order);
		end = find_end(timestamps, order, is_idle);
		is_settled = timestamps->front == NONE || are_unchanged(timestamps, ring, timestamps->front);
	}
	if (is_settled && end != NONE)
		learn(timestamps, order, end, is_idle);
	return is_settled && end != NONE;
}

bool node_timestamps_duration(const struct node_timestamps *timestamps, unsigned int index,
                              const struct times_calibration *calibration, uint64_t *duration_ns)
{
	if (index == 0 || index == timestamps->newer)
		return false;
	const struct timestamps_node_event *node = &timestamps->nodes[index], *before = node - 1;
	uint64_t ways = calibration->graph.release_ns +
	                (index - 1 == timestamps->front ? calibration->front_ns : calibration->graph.next_ns);
	bool are_neighbours =
	    timestamps->has_all || node->number + 1 == before->number || before->number + 1 == node->number;
	uint64_t distance = node->timestamp_ns - before->timestamp_ns;

	*duration_ns = distance > ways ? distance - ways : 0;
	return node->function != 0 && are_neighbours;
}

uint64_t node_timestamps_length(const struct node_timestamps *timestamps, const struct times_calibration *calibration)
{
	uint64_t ways = calibration->graph.release_ns + calibration->front_ns;
	bool is_known = timestamps->begin != 0 && timestamps->end - timestamps->begin > ways;

	return is_known ? timestamps->end - timestamps->begin - ways : 0;
}
