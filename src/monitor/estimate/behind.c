#include "behind.h"

#include "base/extremes.h"

/* So many launches before a kernel are looked at. */
#define LAUNCHES_MOST 32

/* The timestamp of its last node, of whichever launch; TIMES_UNKNOWN where that is not known. */
static uint64_t end_of(const struct timestamps *ring, const struct timestamps_event *graph,
                       const struct node_order *order)
{
	uint64_t latest = order ? order->latest : 0;
	struct timestamps_node_event node;
	bool is_known = latest != 0 && latest >= graph->first && timestamps_read_node(ring, latest, &node);

	return is_known ? node.timestamp_ns : TIMES_UNKNOWN;
}

static void add(struct times_graphs *graphs, const struct timestamps_event *graph, uint64_t end)
{
	graphs->launched_ns = max_u64(graphs->launched_ns, graph->launched_ns);
	graphs->timestamp_ns = max_u64(graphs->timestamp_ns, end);
}

/* Whether one of them may have waited for the other, in whatever streams they were. */
static bool may_wait(const struct timestamps_event *kernel, const struct timestamps_event *graph)
{
	return (kernel->stream & TIMESTAMPS_STREAM_UNKNOWN) == TIMESTAMPS_STREAM_UNKNOWN ||
	       kernel->stream == TIMESTAMPS_STREAM_LEGACY || graph->stream == TIMESTAMPS_STREAM_LEGACY;
}

/* A kernel before that runs, although this one has ended, has lost its timestamp. */
static bool ends_search(const struct timestamps_event *before, const struct timestamps_event *kernel)
{
	return before->stream == kernel->stream && before->state != TIMESTAMPS_RUNNING;
}

static void see_graph(struct times_kernel *kernel, const struct timestamps *ring, const struct timestamps_event *event,
                      const struct timestamps_event *graph, const struct node_order *order)
{
	if (graph->stream == event->stream)
		add(&kernel->before, graph, end_of(ring, graph, order));
	else if (may_wait(event, graph))
		add(&kernel->perhaps_before, graph, end_of(ring, graph, order));
}

void behind_find(struct times_kernel *kernel, const struct timestamps *ring, const struct timestamps_event *event,
                 behind_order *order_of, void *data)
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
			is_found = ends_search(&before, event);
			if (before.state == TIMESTAMPS_GRAPH_LAUNCHED)
				see_graph(kernel, ring, event, &before, order_of(data, &before));
		}
	}
	if (!is_found && back > LAUNCHES_MOST)
		kernel->before.timestamp_ns = TIMES_UNKNOWN;
}
