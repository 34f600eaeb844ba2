#include "lease.h"

#include "base/extremes.h"
#include "edit.h"
#include "layout.h"

/* Set once the number has been raised for the lease; otherwise the next watcher raises the number. */
#define ANNOUNCED UINT64_C(1)

/* Writes the time before raising the number: a thread with the new number sees the new time. */
int lease_renew(struct segment *segment, uint64_t now, struct error *error)
{
	_Atomic uint64_t *lease = &segment->memory->lease;
	uint64_t before = atomic_load_explicit(lease, memory_order_acquire), written;
	int result = 0;

	do {
		written = (now + LEASE_NS) & ~ANNOUNCED;
		if (segment_lease_covers(before, now))
			written = max_u64(before & ~ANNOUNCED, written) | (before & ANNOUNCED);
	} while (!atomic_compare_exchange_weak_explicit(lease, &before, written, memory_order_acq_rel,
	                                                memory_order_acquire));
	if (!segment_lease_covers(before, now) || !(before & ANNOUNCED)) {
		result = segment_raise(segment, error);
		if (result == 0) /* unless a second watcher wrote, and announces a new lease */
			atomic_compare_exchange_strong_explicit(lease, &written, written | ANNOUNCED,
			                                        memory_order_release, memory_order_relaxed);
	}
	return result;
}
