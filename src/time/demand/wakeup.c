#include "wakeup.h"

#include "base/futex.h"
#include "launch/space/epoch.h"

struct time_news time_news;

void wakeup_ring(void)
{
	if (time_news.segment)
		segment_ring(time_news.segment);
}

uint32_t wakeup_count(void)
{
	return atomic_load(segment_rings(time_news.segment));
}

void wakeup_sleep(uint32_t heard, uint64_t until_ns)
{
	futex_wait_until(segment_rings(time_news.segment), heard, until_ns);
}

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
