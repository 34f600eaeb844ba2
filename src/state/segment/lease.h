/*
 * The lease: until when somebody looks at a process. It ends by itself, so a watcher that dies leaves nothing on.
 *
 * It is a time on the owner's clock (base/clock.h), and watchers only ever move it forward, so there can be any
 * number of them. One that finds that nobody looks also raises the segment's number: then the owner's threads ask
 * lease_is_on at their next launch. They ask again at each launch while it is on, and not at all while it is not.
 */
#ifndef NVTASKSET_STATE_SEGMENT_LEASE_H
#define NVTASKSET_STATE_SEGMENT_LEASE_H

#include "segment.h"

/* A lease that lasts longer is none: its time is another process's, or wrong. */
#define LEASE_NS UINT64_C(1500000000)
#define LEASE_LONGEST_NS (2 * LEASE_NS)

/* The owner: whether somebody looks. Reads the clock only if somebody looks, or has looked. */
bool lease_is_on(const struct segment *segment);

/* A watcher: somebody looks from here on for LEASE_NS. `now` is the time on the owner's clock. -1 with the reason, as
 * for segment_change. */
int lease_renew(struct segment *segment, uint64_t now, struct error *error);

#endif
