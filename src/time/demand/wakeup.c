#include "wakeup.h"

#include "base/futex.h"

#include <stdatomic.h>

static _Atomic uint32_t rings;

void wakeup_ring(void)
{
	atomic_fetch_add(&rings, 1);
	futex_wake(&rings, 1);
}

uint32_t wakeup_count(void)
{
	return atomic_load(&rings);
}

void wakeup_sleep(uint32_t heard, uint64_t until_ns)
{
	futex_wait_until(&rings, heard, until_ns);
}
