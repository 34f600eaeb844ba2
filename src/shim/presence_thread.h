/*
 * Our thread in programs that were given something in time: it looks at the program (sight.h) and at the others on its GPUs
 * (neighbours.h), asks who wants it aside (rules.h), and sees to it (aside.h, slices.h). It sleeps most of the time, blocks all
 * signals, and takes no lock of the program's while the program is put aside. It is gone in the child of a fork, and made anew
 * there at need.
 */
#ifndef NVTASKSET_SHIM_PRESENCE_THREAD_H
#define NVTASKSET_SHIM_PRESENCE_THREAD_H

#include "state/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* Whose revisions it follows. It has ended, or is none of this process's. */
void presence_thread_use(const struct segment *segment);

bool presence_thread_exists(void);

/* From any thread: this revision has a rule, or there was one before; there is something that our thread, if it exists,
 * should see at once; the program ends, and is to be back. */
void presence_thread_follow(const struct segment_revision *revision, uint64_t number);
void presence_thread_ring(void);
void presence_thread_end(void);

void presence_thread_after_fork(void);

#endif
