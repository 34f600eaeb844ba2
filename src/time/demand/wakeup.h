/*
 * Who wakes our thread (time/thread.h): any thread of the program, when there is something to see at once; a launch that
 * finds news; and an editor. errno is preserved.
 */
#ifndef NVTASKSET_TIME_DEMAND_WAKEUP_H
#define NVTASKSET_TIME_DEMAND_WAKEUP_H

#include "state/segment/segment.h"

#include <stdatomic.h>
#include <stdint.h>

void wakeup_ring(void);

/* What a launch looks at to find out whether there is news for our thread: whether a revision has come that nobody has looked
 * at, or the thread asks to be rung. */
struct time_news {
	const struct segment *segment; /* with the revisions that our thread follows; NULL: none */
	_Atomic uint64_t seen;         /* the number of the revision that was looked at; 0: our thread asks for the next launch */
};
extern struct time_news time_news __attribute__((visibility("hidden")));

#endif
