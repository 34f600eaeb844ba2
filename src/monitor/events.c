#include "parts.h"

#include "base/purse.h"

#include <stdlib.h>

/* Of what runs, while clocks are compared. */
#define COMPARE_RUNNING 8

/* A scan looks at as many cells as a ring has. */
#define LOOKS_OF_SCAN (TIMESTAMPS_CELLS / 64)

/* Without memory, it gets no time. */
static void keep(struct look *look, const struct watched_event *found)
{
	if (look->found_count == LOOK_EVENTS_MOST || !purse_pay(1)) {
		found->ring->gpu->taken.lost++;
		return;
	}
	if (look->found_count == look->found_room) {
		size_t room = look->found_room ? 2 * look->found_room : 1024;
		struct watched_event *list = realloc(look->found, room * sizeof *list);

		if (!list)
			return;
		look->found = list;
		look->found_room = room;
	}
	look->found[look->found_count++] = *found;
}

struct scan {
	struct look *look;
	struct watched_ring *ring;
	uint64_t began;
	bool keeps_running;
};

static void on_event(const struct timestamps_event *event, void *data)
{
	const struct scan *scan = data;
	bool could_see = event->was_looked_at && event->launched_ns < scan->ring->scanned_at;

	if (event->state != TIMESTAMPS_RUNNING || scan->keeps_running)
		keep(scan->look, &(const struct watched_event){
					 .ring = scan->ring,
					 .event = *event,
					 .unseen = could_see ? scan->ring->scanned_at : 0,
					 .seen = event->state == TIMESTAMPS_ENDED ? look_now(scan->look) : scan->began,
				 });
}

static void scan(struct look *look, struct watched_ring *ring, bool keeps_running, unsigned int running)
{
	struct scan how = {look, ring, look_now(look), keeps_running};

	if (!purse_pay(LOOKS_OF_SCAN))
		return;
	uint64_t lost = timestamps_scan(&ring->reader, running, on_event, &how);

	ring->scanned_at = how.began;
	ring->gpu->taken.lost += lost;
	if (lost > 0)
		times_lose(&ring->gpu->times, timestamps_oldest(&ring->reader));
}

void look_events_ended(struct look *look, struct watched_ring *ring)
{
	scan(look, ring, false, TIMESTAMPS_CELLS);
}

void look_events_some(struct look *look, struct watched_ring *ring)
{
	scan(look, ring, false, COMPARE_RUNNING);
}

void look_events_all(struct look *look, struct watched_ring *ring)
{
	scan(look, ring, true, TIMESTAMPS_CELLS);
}
