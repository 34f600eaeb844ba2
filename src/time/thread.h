/*
 * Our thread in programs that were given something in time: it follows edits, and looks at the program and the others on its GPUs
 * as the rules ask for, without MPS (turns/turns.h) or as a client of MPS (gate). It sleeps while nothing is in flight and nothing
 * is suspended, until the next launch; it blocks all signals, and takes no lock of the program's while the program is suspended.
 * It is gone in the child of a fork, and made anew there at need.
 */
#ifndef NVTASKSET_TIME_THREAD_H
#define NVTASKSET_TIME_THREAD_H

#include "state/segment/segment.h"

#include <stdbool.h>
#include <stdint.h>

bool time_thread_exists(void);

/* From any thread: this revision has a rule, or there was one before; there is something that our thread, if it exists,
 * should see at once; the program ends, and is to be resumed. */
void time_thread_follow(const struct segment_revision *revision, uint64_t number);
void time_thread_ring(void);
void time_thread_end(void);

void time_thread_after_fork(void);

#endif
