#include "wakeup.h"

struct time_news time_news;

void wakeup_ring(void)
{
	if (time_news.segment)
		segment_ring(time_news.segment);
}
