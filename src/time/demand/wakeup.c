#include "wakeup.h"

#include "base/futex.h"
#include "launch/space/epoch.h"

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

struct time_news time_news;

/* Launches that are as before are decided anew, and then see that they are asked for. */
void time_news_ask(void)
{
	atomic_store(&time_news.seen, 0);
	epoch_raise();
}

bool time_news_are_asked_for(void)
{
	return atomic_load(&time_news.seen) == 0;
}
