#include "news.h"

#include "launch/space/epoch.h"

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
