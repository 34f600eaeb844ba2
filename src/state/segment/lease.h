/*
 * The lease: until when a watcher looks at a process. A lease ends without an action of a dead watcher.
 *
 * The lease is a time on the owner's clock (base/clock.h). Watchers only move the time forward, and there can be any
 * number of watchers. The first watcher also raises the segment's number: the owner's threads ask segment_is_watched
 * at the next launch, then at each launch while the lease is on, and never while the lease is off.
 */
#pragma once

#include "events.h"

/* For a watcher: extends the lease until LEASE_NS after `now`, the time on the owner's clock. -1 with the reason, as
 * for segment_change. */
int lease_renew(struct segment *segment, uint64_t now, struct error *error);
