/*
 * What a launch looks at to find out whether there is news for our thread (time/thread.h): whether a revision has come
 * that nobody has looked at, or the thread asks to be rung.
 */
#ifndef NVTASKSET_TIME_DEMAND_NEWS_H
#define NVTASKSET_TIME_DEMAND_NEWS_H

#include "state/segment/segment.h"


#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct time_news {
	const struct segment *segment; /* NULL: none */
	_Atomic uint64_t seen;         /* the number of the revision that was looked at; 0: our thread asks for the next launch */
};
extern struct time_news time_news __attribute__((visibility("hidden")));

/* For our thread: the next launch, or call that we see, rings it; none has yet. */
void time_news_ask(void);
bool time_news_are_asked_for(void);

#endif
