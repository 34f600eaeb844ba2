/*
 * Our thread, in programs with rules in time. The thread follows edits, and looks at the program and its peers as the
 * rules ask: without MPS (turns/turns.h) or as a client of MPS (gate). With nothing in flight and nothing suspended,
 * the thread sleeps until the next launch. The thread blocks all signals, and takes no lock of the program while the
 * program is suspended. The child of a fork has no thread of ours, and makes the thread anew at need.
 */
#pragma once

#include "state/segment/segment.h"

bool time_thread_exists(void);

/* From any thread. Follow: the revision has a rule, or had a rule before. Ring: our thread, if any, should look at
 * once. End: the program ends, and is to be resumed. */
void time_thread_follow(const struct segment_revision *revision, uint64_t number);
void time_thread_ring(void);
void time_thread_end(void);

void time_thread_after_fork(void);
