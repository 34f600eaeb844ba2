#include "parts.h"

#include "base/clock.h"
#include "base/purse.h"

#include <stdlib.h>

/* Of running kernels, while clocks are compared. */
#define COMPARE_RUNNING 8

/* A scan looks at as many cells as a ring has. */
#define LOOKS_OF_SCAN (TIMESTAMPS_CELLS / 64)

/* Without memory, the kernel gets no time. */
static void keep_event(struct monitor *monitor, const struct watched_event *found)
{
	if (monitor->found_count == MONITOR_EVENTS_MOST || !purse_pay(monitor->editor.segment.purse, 1)) {
		found->ring->gpu->taken.lost++;
		return;
	}
	if (monitor->found_count == monitor->found_room) {
		size_t room = monitor->found_room ? 2 * monitor->found_room : 1024;
		struct watched_event *list = realloc(monitor->found, room * sizeof *list);

		if (!list)
			return;
		monitor->found = list;
		monitor->found_room = room;
	}
	monitor->found[monitor->found_count++] = *found;
}

struct scan {
	struct monitor *monitor;
	struct watched_ring *ring;
	uint64_t began;
	bool keeps_running;
};

static void on_event(const struct timestamps_event *event, void *data)
{
	const struct scan *scan = data;
	bool could_see = event->was_looked_at && event->launched_ns < scan->ring->scanned_at;

	if (event->state != TIMESTAMPS_RUNNING || scan->keeps_running)
		keep_event(scan->monitor,
		           &(const struct watched_event){
			 .ring = scan->ring,
			 .event = *event,
			 .unseen = could_see ? scan->ring->scanned_at : 0,
			 .seen = event->state == TIMESTAMPS_ENDED ? process_clock_ns() : scan->began,
		     });
}

static void scan(struct monitor *monitor, struct watched_ring *ring, bool keeps_running, unsigned int running)
{
	struct scan how = {monitor, ring, process_clock_ns(), keeps_running};
	/* Scans while clocks are compared have a bound of time, and would leave nothing for names and later events. */
	unsigned int looks = running == COMPARE_RUNNING ? 0 : LOOKS_OF_SCAN;

	if (!purse_pay(monitor->editor.segment.purse, looks))
		return;
	uint64_t lost = timestamps_scan(&ring->reader, running, on_event, &how);

	ring->scanned_at = how.began;
	ring->gpu->taken.lost += lost;
	if (lost > 0)
		times_lose(&ring->gpu->times, timestamps_oldest(&ring->reader));
}

void monitor_events_ended(struct monitor *monitor, struct watched_ring *ring)
{
	scan(monitor, ring, false, TIMESTAMPS_CELLS);
}

void monitor_events_some(struct monitor *monitor, struct watched_ring *ring)
{
	scan(monitor, ring, false, COMPARE_RUNNING);
}

void monitor_events_all(struct monitor *monitor, struct watched_ring *ring)
{
	scan(monitor, ring, true, TIMESTAMPS_CELLS);
}
