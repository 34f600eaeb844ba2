/* For unit tests of the code that notes events: a watcher looks at a segment, and reads the events since then. */
#pragma once

#include "state/segment/layout.h"
#include "state/segment/events.h"
#include "time/demand/wakeup.h"

static struct segment_events_read events_read;
static const struct segment_event *const noted = events_read.list;

static size_t read_noted(void)
{
	segment_read_events(time_news.segment, &events_read);
	return events_read.count;
}

/* For LEASE_LONGEST_NS. */
static void watch(const struct segment *segment, uint64_t now)
{
	time_news.segment = segment;
	atomic_store(&segment->memory->lease, now + LEASE_LONGEST_NS);
	read_noted();
}
