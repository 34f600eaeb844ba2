/*
 * Events of a process, with their times: waits of launches, suspensions, edits, borrowed TPCs. The owner's threads and
 * editors write events while a watcher looks, without a lock. A reader learns how many events were lost.
 */
#pragma once

#include "segment.h"

/* A lease of more than LEASE_LONGEST_NS is no lease: the time is wrong, or from another clock. */
#define LEASE_NS UINT64_C(1500000000)
#define LEASE_LONGEST_NS (2 * LEASE_NS)

static inline bool segment_lease_covers(uint64_t end, uint64_t now)
{
	return end > now && end - now <= LEASE_LONGEST_NS;
}

/* For writers: the time (base/clock.h) if a watcher looks (lease.h), else 0. Reads the clock only if a watcher looks or
 * has looked. */
uint64_t segment_watched_ns(const struct segment *segment);

static inline bool segment_is_watched(const struct segment *segment)
{
	return segment_watched_ns(segment) != 0;
}

/* The last two have a GPU and a lender (`other`), named as in struct segment_loan. */
enum segment_event_kind {
	SEGMENT_WAITED_FOR_QUOTA,    /* a launch */
	SEGMENT_WAITED_FOR_PRIORITY, /* a launch, for programs of a higher priority */
	SEGMENT_SUSPENDED,
	SEGMENT_EDITED,
	SEGMENT_BORROWS,       /* `tpcs` TPCs of the lender, from `begin_ns` on */
	SEGMENT_KEEPS_WAITING, /* the lender, which came back: for the rest of launches in lent TPCs, at most */
	SEGMENT_EVENT_KINDS
};

/* Of any writer: the kind and the times may be wrong. */
struct segment_event {
	uint32_t kind, tpcs;
	uint64_t begin_ns, end_ns; /* base/clock.h */
	struct pci_address pci;
	uint64_t other;
};

/* Does nothing while no watcher looks, or with NULL. */
void segment_note(const struct segment *segment, const struct segment_event *event);

/* A reader's events since the last read. */
struct segment_events_read {
	uint64_t last; /* the number of the last event */
	uint64_t lost; /* overwritten, or not whole */
	size_t count;
	struct segment_event list[SEGMENT_EVENTS];
};
void segment_read_events(const struct segment *segment, struct segment_events_read *read);
