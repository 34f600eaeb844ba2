/*
 * The third decider: the program's own masks, set through libsmctrl. A mask is for all launches, for the launches into
 * one stream, or for a thread's next launch. The narrower scope wins. The partition limits all masks.
 *
 * The launch callback does not name the stream (facts.md, "Callbacks"); the API call around the callback does (hook.h).
 * We hear of these calls once the program has set a mask for a stream. Before any mask, launches cost nothing more.
 *
 * Kernels in graphs obey the mask for all launches, also after a later change. Masks of streams do not apply to graphs:
 * a node is uploaded once, and the graph may be launched into any stream.
 */
#pragma once

#include "decision.h"
#include "driver/hook.h"

enum app_masks_scope {
	APP_MASKS_ALL,    /* launches without a narrower mask */
	APP_MASKS_STREAM, /* launches into a stream */
	APP_MASKS_NEXT,   /* the calling thread's next launch outside of graphs */
	APP_MASKS_ASK     /* nothing: asks whether masks can be set */
};

/* A mask has a bit for each disabled TPC: TPC n is bit n % 64 of word n / 64. All zero means no mask. */
#define APP_MASKS_WORDS 2

/* Sets a mask. `disabled` is not used with APP_MASKS_ASK. `stream` is a CUstream and is used with APP_MASKS_STREAM
 * only. The default streams NULL and 1 share one mask, in all contexts; 2 is the calling thread's default stream.
 * Returns 0; ENOTSUP if launches will never be announced to us; ENOMEM; EINVAL. libsmctrl looks the name up in our
 * library: another meaning needs another name. */
#define APP_MASKS_ENTRY "nvtaskset_set_mask_1"
typedef int app_masks_set(int scope, void *stream, const uint64_t *disabled);
__attribute__((visibility("default"))) app_masks_set nvtaskset_set_mask_1;

/* From now on, masks can be set. `hears`: we are subscribed; if another tool delays that, call this again
 * afterwards. */
void app_masks_open(bool hears);

/* In the child of a fork, which keeps the parent's masks. The lock is free: the parent's threads do not exist there. */
void app_masks_after_fork(void);

/* Disables TPCs of the partition. A mask that would leave no TPC is overruled. */
void app_masks_decide(const struct launch *launch, struct decision *decision);

/* Whether we must hear of an API call: to create or destroy a stream, or to launch into a stream. */
bool app_masks_want_call(int id);

void app_masks_call_begins(const struct call *call);
void app_masks_call_ended(const struct call *call);
