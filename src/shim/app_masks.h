/*
 * Masks of the program's own, which it sets through libsmctrl: for all its launches, for those into one stream, and for
 * a thread's next one. The more particular one overrides the more general, and the partition stands above them all.
 *
 * The launch callback does not carry the stream (FACTS 2), but the call that it comes from does: its thread remembers
 * the stream until the descriptor comes. We hear of these calls from the first mask of a stream on. Until the program
 * sets a mask, all this costs a launch nothing.
 *
 * Kernels in graphs obey the mask for all launches, also when it changes later. They have no mask of a stream: a node is
 * uploaded once, for whichever stream the graph is launched into.
 */
#ifndef NVTASKSET_SHIM_APP_MASKS_H
#define NVTASKSET_SHIM_APP_MASKS_H

#include "driver/calls.h"
#include "segment.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum streams_scope {
	STREAMS_ALL,  /* launches that have no other mask */
	STREAMS_ONE,  /* launches into a stream */
	STREAMS_NEXT, /* the calling thread's next launch outside of graphs */
	STREAMS_ASK   /* nothing: asks whether masks can be set */
};

/* TPCs that a launch may not use: TPC n is bit n % 64 of words[n / 64]. An empty one counts as none. */
#define STREAMS_WORDS 2

struct streams_mask {
	uint64_t words[STREAMS_WORDS];
};

/* Sets a mask; `stream` is a CUstream, and means something with STREAMS_ONE only. Streams that every context has (NULL, 1)
 * have one mask in all of them; 2 is the calling thread's. 0; ENOTSUP where we shall never hear of launches; ENOMEM; EINVAL.
 * Libsmctrl finds it by this name in whatever library of ours is in the process: the name changes with the meaning. */
#define STREAMS_ENTRY "nvtaskset_set_mask_1"
typedef int streams_set_mask(int scope, void *stream, const uint64_t *disabled);
__attribute__((visibility("default"))) streams_set_mask nvtaskset_set_mask_1;

/* Masks can be set from now on. They are in force once we hear of calls, which another tool may delay. */
void streams_open(bool hears);

/* In the child of a fork, which has its parent's masks: what other threads were doing, they do no more. */
void streams_after_fork(void);

/* Raised by the program's first mask, twice: when it comes, and when every launch looks for its own; then by each for all. */
extern _Atomic uint64_t streams_changes;

/* Raised by every edit of the partition, too: while it stays the same, so does what a graph may use. */
static inline uint64_t streams_revision_number(const struct segment *segment)
{
	return segment_revision_number(segment) + atomic_load_explicit(&streams_changes, memory_order_acquire);
}

/* The mask of the launch that this thread is in the middle of: false where it has none. The next launch is no more
 * after it. */
bool streams_take(struct streams_mask *mask);

/* The same for an upload of a graph's node. */
bool streams_of_graphs(struct streams_mask *mask);

/* Whether we must hear of a call of the driver. */
bool streams_wants_call(int id);

void streams_call_begins(const struct call *call);
void streams_call_ended(const struct call *call);

#endif
