#include "bell.h"

#include "base/futex.h"

#include <stdatomic.h>

static _Atomic uint32_t rings;

void bell_ring(void)
{
	atomic_fetch_add(&rings, 1);
	futex_wake(&rings, 1);
}

uint32_t bell_heard(void)
{
	return atomic_load(&rings);
}

void bell_sleep(uint32_t heard, uint64_t until_ns)
{
	futex_wait_until(&rings, heard, until_ns);
}
