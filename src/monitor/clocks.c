#include "base/clock.h"
#include "parts.h"

#include <stdatomic.h>

/* Clocks with a larger error are compared anew. */
#define GOOD_ERROR_NS 1000
#define COMPARE_NS UINT64_C(2000000)
#define COMPARE_EVERY_NS UINT64_C(10000000)

/* Comparisons in COMPARISONS_NS at most, for all looks of this process. */
#define COMPARISONS_MOST 16
#define COMPARISONS_NS UINT64_C(50000000)

/* Where clocks are not known at all, a take waits longer for an end, if an end came lately. */
#define COARSE_ERROR_NS 100000
#define COMPARE_LONG_NS UINT64_C(120000000)
#define COMPARE_LONG_EVERY_NS UINT64_C(500000000)
#define COMPARE_PAUSE_US 50

/* Of a timestamp, unseen yet at `unseen`, and seen at `seen`. */
static void compare(struct monitor *monitor, struct watched_gpu *gpu, uint64_t launched, uint64_t timestamp,
                    uint64_t unseen, uint64_t seen)
{
	monitor->comparisons +=
	    times_compare(&gpu->times, &(const struct times_kernel){.launched_ns = launched, .timestamp_ns = timestamp},
	                  unseen, seen);
}

void monitor_clocks_compare_events(struct monitor *monitor, size_t from)
{
	for (size_t i = from; i < monitor->found_count; i++) {
		const struct watched_event *found = &monitor->found[i];

		if (found->event.state == TIMESTAMPS_ENDED)
			compare(monitor, found->ring->gpu, found->event.launched_ns, found->event.timestamp_ns,
			        found->unseen, found->seen);
	}
}

static bool is_within(const struct watched_gpu *gpu, uint64_t now, uint64_t most_ns)
{
	struct clock_offset offset;

	return times_clock(&gpu->times, now, &offset) && offset.error_ns <= most_ns;
}

/* Of the GPUs on which something ended lately. */
static bool all_are_within(const struct monitor *monitor, uint64_t now, uint64_t most_ns)
{
	bool all = true;

	for (unsigned int i = 0; i < monitor->gpu_count; i++)
		all = all && (now - monitor->gpus[i]->found_at >= MONITOR_IDLE_NS ||
		              is_within(monitor->gpus[i], now, most_ns));
	return all;
}

/* The timestamps of nodes compare clocks, too. */
static void poll_graph(struct monitor *monitor, const struct watched_ring *ring, struct watched_graph *graph)
{
	uint64_t before = graph->polled_at;
	struct timestamps_node_event last;

	graph->polled_at = process_clock_ns();
	if (graph->order.latest != 0 && timestamps_read_node(ring->reader.ring, graph->order.latest, &last)) {
		if (last.timestamp_ns != graph->polled_end && last.timestamp_ns != 0 && graph->polled_end != 0 &&
		    before != 0)
			compare(monitor, ring->gpu, 0, last.timestamp_ns, before, process_clock_ns());
		graph->polled_end = last.timestamp_ns;
	}
}

static void poll_graphs(struct monitor *monitor, struct watched_ring *ring)
{
	for (unsigned int i = 0; i < ring->graph_count; i++)
		poll_graph(monitor, ring, ring->graphs[i]);
}

static bool may_compare(uint64_t time)
{
	static _Atomic uint64_t window, count;
	uint64_t now = time / COMPARISONS_NS;

	if (atomic_exchange(&window, now) != now)
		atomic_store(&count, 0);
	return atomic_fetch_add(&count, 1) < COMPARISONS_MOST;
}

/* How long to wait for an end, to know the moment when the end can be seen: for long only where the clocks are not
 * known at all, and not for each program under a look. */
static uint64_t time_to_wait(struct monitor *monitor, uint64_t now)
{
	static _Atomic uint64_t last;
	uint64_t before = atomic_load(&last), wait = 0;
	bool has_ended = monitor->found_count > 0;

	for (size_t i = 0; i < monitor->found_count; i++)
		monitor->found[i].ring->gpu->found_at = now;
	if (now - monitor->compared_at < COMPARE_EVERY_NS || all_are_within(monitor, now, GOOD_ERROR_NS))
		wait = 0;
	else if (!all_are_within(monitor, now, COARSE_ERROR_NS) && now - before >= COMPARE_LONG_EVERY_NS &&
	         atomic_compare_exchange_strong(&last, &before, now))
		wait = COMPARE_LONG_NS;
	else if (has_ended && may_compare(now))
		wait = COMPARE_NS;
	return wait;
}

/* Looks all the time, for a while. A nearly idle program is waited for longer, and looked at less closely. To evaluate
 * the clocks takes longer than a look, and happens only after news. */
void monitor_clocks_compare_closely(struct monitor *monitor)
{
	uint64_t begin = process_clock_ns(), now = begin, wait = time_to_wait(monitor, begin);
	bool is_done = false;

	if (wait == 0)
		return;
	monitor_rings_each(monitor, poll_graphs);
	while (now - begin < wait && !is_done) {
		size_t before = monitor->found_count;
		uint64_t comparisons = monitor->comparisons;
		bool is_long = now - begin >= COMPARE_NS;

		if (is_long)
			clock_pause_us(COMPARE_PAUSE_US);
		monitor_rings_each(monitor, monitor_events_some);
		monitor_rings_each(monitor, poll_graphs);
		monitor_clocks_compare_events(monitor, before);
		now = process_clock_ns();
		if (is_long || monitor->comparisons != comparisons)
			is_done = all_are_within(monitor, now, is_long ? COARSE_ERROR_NS : GOOD_ERROR_NS);
	}
	monitor->compared_at = now;
}
