/*
 * What our thread (time/thread.h) sleeps on: any thread of the program wakes it when there is something that it should
 * see at once. errno is preserved.
 */
#ifndef NVTASKSET_TIME_DEMAND_WAKEUP_H
#define NVTASKSET_TIME_DEMAND_WAKEUP_H

#include <stdint.h>

void wakeup_ring(void);

/* For our thread: first how often it has been rung, then, after a look, sleep until it is rung again, or until then. */
uint32_t wakeup_count(void);
void wakeup_sleep(uint32_t heard, uint64_t until_ns);

#endif
