/*
 * The second decider: masks of the program's own, which it sets through libsmctrl: for all its launches, for those into one
 * stream, for a thread's next one. The more particular one overrides the more general, and the partition stands above them
 * all.
 *
 * The launch callback does not carry the stream (docs/facts.md, "Callbacks"), but the call that it comes from does
 * (hook.h). We hear of these calls from the first mask of a stream on. Until the program sets a mask, all this costs a
 * launch nothing.
 *
 * Kernels in graphs obey the mask for all launches, also when it changes later. They have no mask of a stream: a node is
 * uploaded once, for whichever stream the graph is launched into.
 */
#ifndef NVTASKSET_SHIM_APP_MASKS_H
#define NVTASKSET_SHIM_APP_MASKS_H

#include "decision.h"
#include "driver/hook.h"

#include <stdbool.h>
#include <stdint.h>

enum app_masks_scope {
	APP_MASKS_ALL,  /* launches that have no other mask */
	APP_MASKS_ONE,  /* launches into a stream */
	APP_MASKS_NEXT, /* the calling thread's next launch outside of graphs */
	APP_MASKS_ASK   /* nothing: asks whether masks can be set */
};

/* TPCs that a launch may not use: TPC n is bit n % 64 of word n / 64. An empty one counts as none. */
#define APP_MASKS_WORDS 2

/* Sets a mask; `stream` is a CUstream, and means something with APP_MASKS_ONE only. Streams that every context has (NULL, 1)
 * have one mask in all of them; 2 is the calling thread's. 0; ENOTSUP where we shall never hear of launches; ENOMEM; EINVAL.
 * Libsmctrl finds it by this name in whatever library of ours is in the process: the name changes with the meaning. */
#define APP_MASKS_ENTRY "nvtaskset_set_mask_1"
typedef int app_masks_set(int scope, void *stream, const uint64_t *disabled);
__attribute__((visibility("default"))) app_masks_set nvtaskset_set_mask_1;

/* Masks can be set from now on. They are in force once we hear of calls, which another tool may delay. */
void app_masks_open(bool hears);

/* In the child of a fork, which has its parent's masks: what other threads were doing, they do no more. */
void app_masks_after_fork(void);

/* Takes from what the partition leaves. An own mask that leaves nothing of that is overruled. */
void app_masks_decide(const struct launch *launch, struct decision *decision);

/* Whether we must hear of a call of the driver: streams that come and go, and those that launches go into. */
bool app_masks_want_call(int id);

void app_masks_call_begins(const struct call *call);
void app_masks_call_ended(const struct call *call);

#endif
