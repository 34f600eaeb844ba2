#include "base/clock.h"
#include "monitor/estimate/graph_times.h"
#include "parts.h"

#include <stdlib.h>

#define NODES_MAX (16 * TIMESTAMPS_NODES) /* read in one take: a hostile process names any number */

static struct watched_graph *find_graph(const struct watched_ring *ring, uint64_t exec)
{
	struct watched_graph *found = NULL;

	for (unsigned int i = 0; i < ring->graph_count && !found; i++)
		found = ring->graphs[i]->exec == exec ? ring->graphs[i] : NULL;
	return found;
}

/* NULL if there are too many, or there is no memory. */
static struct watched_graph *graph_for(struct monitor *monitor, struct watched_ring *ring, uint64_t exec)
{
	struct watched_graph *found = find_graph(ring, exec);

	if (!found && ring->graph_count < MONITOR_GRAPHS_MAX && ring->gpu->graphs < MONITOR_GRAPHS_MOST &&
	    monitor_reserve_memory(monitor, sizeof *found)) {
		found = calloc(1, sizeof *found);
		if (found) {
			ring->gpu->graphs++;
			found->exec = exec;
			ring->graphs[ring->graph_count++] = found;
		}
	}
	return found;
}

/* A hostile process names any numbers: the work is bounded by all cells. */
static void set_nodes(struct watched_graph *graph, uint64_t first, uint64_t last, uint64_t end)
{
	if (last >= TIMESTAMPS_IS_NODE)
		last = 0;
	if (first > last || last - first >= TIMESTAMPS_NODES)
		first = last + 1;
	if (end < last || end - last >= TIMESTAMPS_NODES)
		end = last;
	if (graph->first != first || graph->last != last) {
		graph->order = (struct node_order){.front = 0};
		graph->polled_end = 0;
	}
	graph->first = first;
	graph->last = last;
	graph->end = end;
}

/* An instance that does not tell its end loses kernels; earlier launches of the instance have ended or never will. */
void monitor_graphs_launched(struct monitor *monitor, const struct watched_event *found)
{
	struct watched_graph *graph = graph_for(monitor, found->ring, found->event.exec);

	if (graph && found->event.first == 0) {
		found->ring->gpu->taken.lost += found->event.tpcs;
		found->ring->gpu->misses_graph = true;
		graph->replays = (struct replays){.first = 0};
		set_nodes(graph, 1, 0, 0);
	} else if (graph) {
		set_nodes(graph, found->event.first, found->event.last, found->event.end);
		graph->kernels = found->event.tpcs;
		if (!graph_times_replays_launch(&graph->replays, found->event.launched_ns))
			found->ring->gpu->taken.lost++;
	}
}

struct search {
	struct monitor *monitor;
	const struct watched_ring *ring;
};

static const struct node_order *order_of(void *data, const struct timestamps_event *event)
{
	const struct search *search = data;
	bool may_search = search->monitor->nodes_read < NODES_MAX;
	const struct watched_graph *graph = may_search ? find_graph(search->ring, event->exec) : NULL;

	search->monitor->nodes_read += may_search;
	return graph ? &graph->order : NULL;
}

void monitor_graphs_before(struct monitor *monitor, const struct watched_event *found, struct times_kernel *kernel)
{
	graph_times_before(kernel, found->ring->reader.ring, &found->event, order_of,
	                   &(struct search){monitor, found->ring});
}

static void take_functions(struct monitor *monitor, struct watched_ring *ring, const struct watched_graph *graph,
                           uint64_t replays)
{
	uint64_t function = 0;

	for (uint64_t number = graph->last + 1; number <= graph->end && monitor->nodes_read < NODES_MAX;
	     number++, monitor->nodes_read++) {
		uint64_t nodes = timestamps_read_function(ring->reader.ring, number, graph->exec, &function);

		if (nodes > 0)
			monitor_functions_find(monitor, ring, function)->instances += nodes * replays;
	}
}

/* Nodes with a cell are samples, once for each timestamp. */
static void take_nodes(struct monitor *monitor, struct watched_ring *ring, struct watched_graph *graph)
{
	const struct node_timestamps *nodes = &monitor->nodes;
	uint64_t duration;

	for (unsigned int i = 0; i < nodes->count; i++) {
		const struct timestamps_node_event *node = &nodes->nodes[i];

		if (node->timestamp_ns > graph->sampled &&
		    graph_times_node_duration(nodes, i, &ring->gpu->times.calibration, &duration)) {
			durations_add(&monitor_functions_find(monitor, ring, node->function)->durations, duration);
			ring->gpu->taken.timed++;
		}
	}
	graph->sampled = nodes->nodes[nodes->count - 1].timestamp_ns;
}

/* The nodes of the last launch that has ended, as far as their lengths are known. */
static void tell_nodes(const struct monitor *monitor, struct watched_ring *ring, const struct watched_graph *graph)
{
	const struct node_timestamps *nodes = &monitor->nodes;
	struct times *times = &ring->gpu->times;
	uint64_t duration, end;

	for (unsigned int i = 0; i < nodes->count; i++) {
		const struct timestamps_node_event *node = &nodes->nodes[i];
		bool is_of_last = node->timestamp_ns >= nodes->begin && node->timestamp_ns <= nodes->end;

		if (is_of_last && graph_times_node_duration(nodes, i, &times->calibration, &duration) &&
		    times_convert(times, node->timestamp_ns, 0, &end)) {
			end -= times->calibration.graph.release_ns;
			times_add_interval(times, (struct times_interval){
				.kind = TIMES_NODE, .begin = end - duration, .end = end, .is_behind = true,
				.tpcs = node->tpcs, .grid = node->grid, .stream = graph->exec,
				.function = monitor_functions_number(ring, node->function)});
		}
	}
}

/* A single kernel has nothing in front. */
static const struct times_ways *ways_of(const struct watched_ring *ring, const struct watched_graph *graph)
{
	const struct times_calibration *calibration = &ring->gpu->times.calibration;

	return graph->kernels == 1 ? &calibration->plain : &calibration->graph;
}

/* Whether a launch has ended since the last taken launch. */
static bool read_nodes(struct monitor *monitor, const struct watched_ring *ring, struct watched_graph *graph)
{
	bool waits = graph->replays.first < graph->replays.next && graph->first <= graph->last;
	struct timestamps_node_event latest;
	bool may_have = waits && (graph->order.latest == 0 ||
	                          !timestamps_read_node(ring->reader.ring, graph->order.latest, &latest) ||
	                          latest.timestamp_ns > graph->seen_end);

	if (!may_have || monitor->nodes_read >= NODES_MAX)
		return false;
	/* Launches may have come since nothing was in flight. */
	bool is_idle =
	    ring->gpu->in_flight == 0 && graph_times_replays_after(&graph->replays,
	                                                           monitor->counted_at) == graph->replays.next;
	uint64_t watched = graph->order.latest;

	monitor->nodes_read += (unsigned int)(graph->last - graph->first + 1);
	bool has_end = graph_times_read_nodes(&monitor->nodes, ring->reader.ring, graph->exec, graph->first,
	                                      graph->last,
	                                      is_idle, &graph->order) &&
	               monitor->nodes.end > graph->seen_end;

	if (graph->order.latest != watched)
		graph->polled_end = 0;
	return has_end;
}

/* The end was not to be seen before the first waiting launch was on the GPU. Another launch's end is not believed. */
static void compare_graph(const struct monitor *monitor, const struct watched_ring *ring,
                          const struct watched_graph *graph)
{
	const struct replays *replays = &graph->replays;
	const struct times_calibration *calibration = &ring->gpu->times.calibration;
	uint64_t launched = replays->launched[replays->first % REPLAYS_WAITING];

	times_compare(&ring->gpu->times, &(const struct times_kernel){.timestamp_ns = monitor->nodes.end},
	              launched + calibration->latency_least_ns + calibration->plain.release_ns, process_clock_ns());
}

static void take_end(struct monitor *monitor, struct watched_ring *ring, struct watched_graph *graph, uint64_t now)
{
	struct watched_gpu *gpu = ring->gpu;
	const struct times_ways *ways = ways_of(ring, graph);
	uint64_t end;

	compare_graph(monitor, ring, graph);
	if (times_convert(&gpu->times, monitor->nodes.end, now, &end)) {
		graph->tpcs = monitor->nodes.tpcs;
		graph->seen_end = monitor->nodes.end;
		size_t before = gpu->times.count;
		uint64_t replays = graph_times_replays_see_end(&graph->replays, &gpu->times, ways,
		                                               end - ways->release_ns,
		                                               graph_times_node_length(&monitor->nodes,
		                                                                       &gpu->times.calibration),
		                                               gpu->in_flight == 0, graph->tpcs);

		for (size_t i = before; i < gpu->times.count; i++)
			gpu->times.intervals[i].stream = graph->exec;
		if (monitor->tells)
			tell_nodes(monitor, ring, graph);
		take_functions(monitor, ring, graph, replays);
		take_nodes(monitor, ring, graph);
	}
}

/* Nothing was in flight: earlier launches have ended. The timestamp may come a little later, within another take. */
static void take_idle(struct monitor *monitor, struct watched_ring *ring, struct watched_graph *graph)
{
	uint64_t dropped = graph_times_replays_drop(&graph->replays, graph->idle_number);

	take_functions(monitor, ring, graph, dropped);
	ring->gpu->taken.lost += dropped * graph->kernels;
	graph->idle_number = graph_times_replays_after(&graph->replays, monitor->counted_at);
}

static void take_graph(struct monitor *monitor, struct watched_ring *ring, struct watched_graph *graph, uint64_t now)
{
	struct watched_gpu *gpu = ring->gpu;

	if (read_nodes(monitor, ring, graph))
		take_end(monitor, ring, graph, now);
	if (gpu->in_flight == 0)
		take_idle(monitor, ring, graph);
	else
		graph_times_replays_see_running(&graph->replays, &gpu->times, ways_of(ring, graph), now, graph->tpcs);
}

void monitor_graphs_take(struct monitor *monitor, struct watched_ring *ring)
{
	uint64_t now = process_clock_ns();

	for (unsigned int i = 0; i < ring->graph_count; i++)
		take_graph(monitor, ring, ring->graphs[i], now);
}
