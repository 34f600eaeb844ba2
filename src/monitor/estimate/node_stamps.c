#include "node_stamps.h"

#include <limits.h>
#include <stdlib.h>

#define NONE UINT_MAX

/* Stamps may be written while they are read. */
#define TRIES 3

static int compare(const void *a, const void *b)
{
	const struct stamps_node_event *one = a, *other = b;

	return (one->stamp_ns > other->stamp_ns) - (one->stamp_ns < other->stamp_ns);
}

static void read_all(struct node_stamps *stamps, const struct stamps *ring, uint64_t exec, uint64_t first, uint64_t last)
{
	stamps->count = stamps->waiting = 0;
	stamps->has_all = true;
	for (uint64_t number = first; number <= last; number++) {
		struct stamps_node_event node;

		if (!stamps_read_node(ring, number, &node) || node.exec != exec)
			continue;
		if (node.is_break)
			stamps->has_all = false;
		else if (node.stamp_ns == 0)
			stamps->waiting++;
		else
			stamps->nodes[stamps->count++] = node;
	}
	qsort(stamps->nodes, stamps->count, sizeof stamps->nodes[0], compare);
}

static unsigned int find(const struct node_stamps *stamps, uint64_t number)
{
	unsigned int index = 0;

	while (index < stamps->count && stamps->nodes[index].number != number)
		index++;
	return index < stamps->count ? index : NONE;
}

/* The driver has kernels of its own also in place of disabled nodes. */
static unsigned int find_front(const struct node_stamps *stamps, const struct node_order *order)
{
	unsigned int found = NONE, count = 0;

	for (unsigned int i = 0; i < stamps->count; i++) {
		if (stamps->nodes[i].function == 0) {
			found = i;
			count++;
		}
	}
	if (stamps->count <= 1 || count == 0)
		found = NONE;
	else if (count > 1)
		found = find(stamps, order->front);
	return found;
}

/* Whether they have the same stamps as before, up to this index: then those that are behind it are newer. */
static bool are_unchanged(const struct node_stamps *stamps, const struct stamps *ring, unsigned int index)
{
	bool are = true;

	for (unsigned int i = 0; i <= index && are; i++) {
		struct stamps_node_event again;

		are = stamps_read_node(ring, stamps->nodes[i].number, &again) && again.stamp_ns == stamps->nodes[i].stamp_ns;
	}
	return are;
}

/* The index of the last node of the last launch that has ended; NONE if that is not known. */
static unsigned int find_end(struct node_stamps *stamps, const struct node_order *order, bool is_idle)
{
	bool have_all = stamps->waiting == 0;
	unsigned int end;

	if (have_all && stamps->front != NONE) {
		stamps->newer = stamps->front;
		end = stamps->newer > 0 ? stamps->newer - 1 : stamps->count - 1;
	} else if (is_idle || (have_all && stamps->count == 1)) {
		stamps->newer = 0;
		end = stamps->count - 1;
	} else {
		end = find(stamps, order->latest);
		stamps->newer = end != NONE ? end + 1 : 0;
	}
	return end;
}

static void learn(struct node_stamps *stamps, struct node_order *order, unsigned int end, bool is_idle)
{
	const struct stamps_node_event *last = &stamps->nodes[end], *oldest = &stamps->nodes[0];

	if (is_idle && stamps->front == NONE && end > 0 && oldest->function == 0) {
		stamps->front = 0;
		order->front = oldest->number;
	}
	order->latest = last->number;
	stamps->end = last->stamp_ns;
	stamps->tpcs = last->tpcs;
	stamps->begin = stamps->front == 0 ? oldest->stamp_ns : 0;
}

bool node_stamps_read(struct node_stamps *stamps, const struct stamps *ring, uint64_t exec, uint64_t first, uint64_t last,
                      bool is_idle, struct node_order *order)
{
	unsigned int end = NONE;
	bool is_settled = false;

	for (int tries = 0; tries < TRIES && !is_settled; tries++) {
		read_all(stamps, ring, exec, first, last);
		if (stamps->count == 0)
			return false;
		stamps->front = find_front(stamps, order);
		end = find_end(stamps, order, is_idle);
		is_settled = stamps->front == NONE || are_unchanged(stamps, ring, stamps->front);
	}
	if (is_settled && end != NONE)
		learn(stamps, order, end, is_idle);
	return is_settled && end != NONE;
}

bool node_stamps_duration(const struct node_stamps *stamps, unsigned int index, const struct times_calibration *calibration,
                          uint64_t *duration_ns)
{
	if (index == 0 || index == stamps->newer)
		return false;
	const struct stamps_node_event *node = &stamps->nodes[index], *before = node - 1;
	uint64_t ways = calibration->graph.release_ns +
	                (index - 1 == stamps->front ? calibration->front_ns : calibration->graph.next_ns);
	bool are_neighbours = stamps->has_all || node->number + 1 == before->number || before->number + 1 == node->number;
	uint64_t distance = node->stamp_ns - before->stamp_ns;

	*duration_ns = distance > ways ? distance - ways : 0;
	return node->function != 0 && are_neighbours;
}

uint64_t node_stamps_length(const struct node_stamps *stamps, const struct times_calibration *calibration)
{
	uint64_t ways = calibration->graph.release_ns + calibration->front_ns;
	bool is_known = stamps->begin != 0 && stamps->end - stamps->begin > ways;

	return is_known ? stamps->end - stamps->begin - ways : 0;
}
