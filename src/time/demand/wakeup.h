/*
 * What our thread (time/thread.h) sleeps on, and who wakes it: any thread of the program, when there is something that it should
 * see at once; a launch that finds news; and an editor. errno is preserved.
 */
#ifndef NVTASKSET_TIME_DEMAND_WAKEUP_H
#define NVTASKSET_TIME_DEMAND_WAKEUP_H

#include "state/segment/segment.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

void wakeup_ring(void);

/* For our thread: first how often it has been rung, then, after a look, sleep until it is rung again, or until then. */
uint32_t wakeup_count(void);
void wakeup_sleep(uint32_t heard, uint64_t until_ns);

/* What a launch looks at to find out whether there is news for our thread: whether a revision has come that nobody has looked
 * at, or the thread asks to be rung. */
struct time_news {
	const struct segment *segment; /* NULL: none */
	_Atomic uint64_t seen;         /* the number of the revision that was looked at; 0: our thread asks for the next launch */
};
extern struct time_news time_news __attribute__((visibility("hidden")));

/* For our thread: the next launch, or call that we see, rings it; none has yet. */
void time_news_ask(void);
bool time_news_are_asked_for(void);

#endif
