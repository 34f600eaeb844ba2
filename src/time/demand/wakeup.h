/*
 * Wakes our thread (time/thread.h): called by any thread of the program for urgent news, and by a launch that finds
 * news. An editor wakes our thread too. errno is preserved.
 */
#pragma once

#include "state/segment/segment.h"

#include <stdatomic.h>

void wakeup_ring(void);

/* News for our thread, for the launches to look at: a new revision that our thread has not seen, or our thread asks to
 * be rung. */
struct time_news {
	const struct segment *segment; /* with the revisions for our thread; NULL: none */
	_Atomic uint64_t seen;         /* the last revision looked at; 0: our thread asks for the next launch */
};
extern struct time_news time_news __attribute__((visibility("hidden")));
