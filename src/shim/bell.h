/*
 * What our thread (presence_thread.h) sleeps on: any thread of the program wakes it when there is something that it should see at
 * once. errno is preserved.
 */
#ifndef NVTASKSET_SHIM_BELL_H
#define NVTASKSET_SHIM_BELL_H

#include <stdint.h>

void bell_ring(void);

/* For our thread: first how often it has been rung, then, after a look, sleep until it is rung again, or until then. */
uint32_t bell_heard(void);
void bell_sleep(uint32_t heard, uint64_t until_ns);

#endif
