#include "graph_times.h"

#include "base/extremes.h"

#include <limits.h>
#include <stdlib.h>

/* --- the nodes of one graph --------------------------------------------------------------------------------------- */

#define NONE UINT_MAX

/* Timestamps may be written during a read. */
#define TRIES 3

static int compare_nodes(const void *a, const void *b)
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
	qsort(timestamps->nodes, timestamps->count, sizeof timestamps->nodes[0], compare_nodes);
}

static unsigned int find_node(const struct node_timestamps *timestamps, uint64_t number)
{
	unsigned int index = 0;

	while (index < timestamps->count && timestamps->nodes[index].number != number)
		index++;
	return index < timestamps->count ? index : NONE;
}

/* The driver also has kernels in place of disabled nodes. */
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
		found = find_node(timestamps, order->front);
	return found;
}

/* Whether the timestamps are the same as before, up to the index: then the timestamps behind are newer. */
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

/* The index of the last node of the last ended launch; NONE if not known. */
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
		end = find_node(timestamps, order->latest);
		timestamps->newer = end != NONE ? end + 1 : 0;
	}
	return end;
}

static void learn_order(struct node_timestamps *timestamps, struct node_order *order, unsigned int end, bool is_idle)
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

bool graph_times_read_nodes(struct node_timestamps *timestamps, const struct timestamps *ring, uint64_t exec,
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
		learn_order(timestamps, order, end, is_idle);
	return is_settled && end != NONE;
}

bool graph_times_node_duration(const struct node_timestamps *timestamps, unsigned int index,
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

uint64_t graph_times_node_length(const struct node_timestamps *timestamps, const struct times_calibration *calibration)
{
	uint64_t ways = calibration->graph.release_ns + calibration->front_ns;
	bool is_known = timestamps->begin != 0 && timestamps->end - timestamps->begin > ways;

	return is_known ? timestamps->end - timestamps->begin - ways : 0;
}

/* --- the launches of one graph ------------------------------------------------------------------------------------ */

bool graph_times_replays_launch(struct replays *replays, uint64_t launched_ns)
{
	bool has_room = replays->next - replays->first < REPLAYS_WAITING;

	if (has_room)
		replays->launched[replays->next++ % REPLAYS_WAITING] = launched_ns;
	return has_room;
}

/* When launch `number` begins, if the launch before ended at `end`. */
static uint64_t begin_of(const struct replays *replays, const struct times_ways *ways, uint64_t number, uint64_t end)
{
	uint64_t launched = replays->launched[number % REPLAYS_WAITING] + ways->latency_ns;
	uint64_t behind = end + ways->release_ns + ways->next_ns;

	return max_u64(launched, behind);
}

uint64_t graph_times_replays_after(const struct replays *replays, uint64_t time)
{
	uint64_t number = replays->first;

	while (number < replays->next && replays->launched[number % REPLAYS_WAITING] < time)
		number++;
	return number;
}

/* Before the first measured length, the launches before the end share the time. */
static uint64_t guess_length(const struct replays *replays, const struct times_ways *ways, uint64_t open, uint64_t end)
{
	uint64_t begin = begin_of(replays, ways, replays->first, replays->end);

	return open > 0 && end > begin ? (end - begin) / open : 0;
}

/* How many of the open launches have ended at `end`, if each takes `length`: one at least. */
static uint64_t ended_by(const struct replays *replays, const struct times_ways *ways, uint64_t open, uint64_t length,
                         uint64_t end)
{
	uint64_t stop = replays->end, count = 0;

	for (uint64_t i = 0; i < open && stop <= end + length / 2; i++) {
		stop = begin_of(replays, ways, replays->first + i, stop) + length;
		count += stop <= end + length / 2;
	}
	return count == 0 && open > 0 ? 1 : count;
}

/* `is_last`: the launch whose end was seen, perhaps with a measured length. */
static void add_ended(struct replays *replays, struct times *times, const struct times_ways *ways, uint64_t length,
                      uint64_t end, bool is_last, bool is_measured, unsigned int tpcs)
{
	uint64_t begin = begin_of(replays, ways, replays->first, replays->end);
	uint64_t stop = is_last || begin + length > end ? end : begin + length;

	if (is_last && length < end && (is_measured || begin > end - length))
		begin = end - length;
	times_add_interval(times, (struct times_interval){.begin = begin, .end = stop, .tpcs = tpcs,
	                                                  .kind = TIMES_GRAPH, .is_behind = is_last && is_measured});
	replays->end = stop;
	replays->first++;
}

uint64_t graph_times_replays_see_end(struct replays *replays, struct times *times, const struct times_ways *ways,
                                     uint64_t end, uint64_t length_ns, bool none_is_left, unsigned int tpcs)
{
	uint64_t open = graph_times_replays_after(replays, end) - replays->first;

	if (length_ns != 0)
		replays->length_ns = length_ns;
	uint64_t length = replays->length_ns != 0 ? replays->length_ns
	                                          : guess_length(replays, ways, open, end);
	uint64_t ended = none_is_left ? open : ended_by(replays, ways, open, length, end);

	for (uint64_t i = 1; i <= ended; i++)
		add_ended(replays, times, ways, length, end, i == ended, length_ns != 0, tpcs);
	return ended;
}

void graph_times_replays_see_running(const struct replays *replays, struct times *times, const struct times_ways *ways,
                                     uint64_t now, unsigned int tpcs)
{
	if (replays->first < replays->next)
		times_add_interval(times, (struct times_interval){
			.begin = begin_of(replays, ways, replays->first, replays->end), .end = now, .tpcs = tpcs});
}

uint64_t graph_times_replays_drop(struct replays *replays, uint64_t number)
{
	uint64_t count = 0;

	for (; replays->first < number && replays->first < replays->next; replays->first++)
		count++;
	return count;
}

/* --- the graphs before a kernel ----------------------------------------------------------------------------------- */

#define LAUNCHES_MOST 32

/* The timestamp of the graph's last node, of any launch; TIMES_UNKNOWN where not known. */
static uint64_t end_of(const struct timestamps *ring, const struct timestamps_event *graph,
                       const struct node_order *order)
{
	uint64_t latest = order ? order->latest : 0;
	struct timestamps_node_event node;
	bool is_known = latest != 0 && latest >= graph->first && timestamps_read_node(ring, latest, &node);

	return is_known ? node.timestamp_ns : TIMES_UNKNOWN;
}

static void add_graph(struct times_graphs *graphs, const struct timestamps_event *graph, uint64_t end)
{
	graphs->launched_ns = max_u64(graphs->launched_ns, graph->launched_ns);
	graphs->timestamp_ns = max_u64(graphs->timestamp_ns, end);
}

/* Whether kernel or graph may have waited for the other, in any streams. */
static bool may_wait(const struct timestamps_event *kernel, const struct timestamps_event *graph)
{
	return (kernel->stream & TIMESTAMPS_STREAM_UNKNOWN) == TIMESTAMPS_STREAM_UNKNOWN ||
	       kernel->stream == TIMESTAMPS_STREAM_LEGACY || graph->stream == TIMESTAMPS_STREAM_LEGACY;
}

static void see_graph(struct times_kernel *kernel, const struct timestamps *ring, const struct timestamps_event *event,
                      const struct timestamps_event *graph, const struct node_order *order)
{
	if (graph->stream == event->stream)
		add_graph(&kernel->before, graph, end_of(ring, graph, order));
	else if (may_wait(event, graph))
		add_graph(&kernel->perhaps_before, graph, end_of(ring, graph, order));
}

void graph_times_before(struct times_kernel *kernel, const struct timestamps *ring,
                        const struct timestamps_event *event, graphs_before_order *order_of, void *data)
{
	bool has_graphs = atomic_load_explicit(&ring->nodes, memory_order_relaxed) > 0, is_found = !has_graphs;
	uint64_t back = 1;

	kernel->before = kernel->perhaps_before = (struct times_graphs){.timestamp_ns = 0};
	for (;
	     !is_found && back <= LAUNCHES_MOST && back < event->number && kernel->before.timestamp_ns != TIMES_UNKNOWN;
	     back++) {
		struct timestamps_event before;

		if (!timestamps_read_launch(ring, event->number - back, &before)) {
			kernel->before.timestamp_ns = TIMES_UNKNOWN;
		} else {
			/* A kernel before that runs after the end of this kernel has lost its timestamp. */
			is_found = before.stream == event->stream && before.state != TIMESTAMPS_RUNNING;
			if (before.state == TIMESTAMPS_GRAPH_LAUNCHED)
				see_graph(kernel, ring, event, &before, order_of(data, &before));
		}
	}
	if (!is_found && back > LAUNCHES_MOST)
		kernel->before.timestamp_ns = TIMES_UNKNOWN;
}
