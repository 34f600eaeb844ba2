#include "behind.h"

/* So many launches before a kernel are looked at. */
#define LAUNCHES_MOST 64

/* The stamp of its last node, of whichever launch; TIMES_UNKNOWN where that is not known. */
static uint64_t end_of(const struct stamps *ring, const struct stamps_event *graph, const struct node_order *order)
{
	uint64_t latest = order ? order->latest : 0;
	struct stamps_node_event node;
	bool is_known = latest != 0 && latest >= graph->first && latest <= graph->last && stamps_read_node(ring, latest, &node) &&
	                node.exec == graph->exec && node.stamp_ns != 0;

	return is_known ? node.stamp_ns : TIMES_UNKNOWN;
}

void behind_find(struct times_kernel *kernel, const struct stamps *ring, const struct stamps_event *event,
                 behind_order *order_of, void *data)
{
	bool is_unknown = (event->stream & STAMPS_STREAM_UNKNOWN) == STAMPS_STREAM_UNKNOWN, is_last = false;

	kernel->graph_ns = 0;
	kernel->graph_may_be_elsewhere = is_unknown;
	for (uint64_t back = 1; back <= LAUNCHES_MOST && back < event->number && !is_last; back++) {
		struct stamps_event before;

		if (!stamps_read_launch(ring, event->number - back, &before))
			continue;
		is_last = before.stream == event->stream;
		if (before.state == STAMPS_GRAPH_LAUNCHED && (is_last || is_unknown)) {
			uint64_t end = end_of(ring, &before, order_of(data, &before));

			kernel->graph_ns = end > kernel->graph_ns ? end : kernel->graph_ns;
		}
	}
}
