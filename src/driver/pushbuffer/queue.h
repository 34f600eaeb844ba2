/*
 * Launches that wait in the queues of their streams, and whose masks can still be changed (hardware.md, "Queued
 * launches").
 *
 * Until the GPU fetches the commands of a launch, a mask that is written into the descriptor among these commands
 * acts. The memory of the commands is used again only after the GPU has processed the commands, and the GPU does not
 * process them before the launch ahead in the stream has ended. So a launch is noted only behind a launch of the same
 * stream that has not ended, and nothing is written once that one has: the look and the store are one restartable
 * sequence (swap.h), which expects the exact word that was there. What remains is a virtual processor that is taken
 * away between the look and the store for as long as the driver needs to fill the pushbuffer of the channel once,
 * some 4 MB: the store then meets other commands, whose word at this place must equal the mask's, with the tag of the
 * launch in the bits of absent TPCs.
 *
 * Nothing here is about partitions: others say which mask a launch gets.
 */
#ifndef NVTASKSET_DRIVER_PUSHBUFFER_QUEUE_H
#define NVTASKSET_DRIVER_PUSHBUFFER_QUEUE_H

#include "driver/hook.h"
#include "gpu/qmd.h"

#include <stdbool.h>
#include <stdint.h>

enum queue_outcome {
	QUEUE_NOTED,
	QUEUE_ALONE,     /* nothing of the stream is known to be ahead */
	QUEUE_NO_MASK,   /* the descriptor has no valid mask, or is of an unknown version */
	QUEUE_NOT_FOUND, /* the descriptor is not in the commands, or more than once */
	QUEUE_STREAMS,   /* another stream has the place */
	QUEUE_OUTCOMES
};

/* Whether launches can be noted in this process. Call it once, outside of the launch path. */
bool queue_prepare(void);

/* A launch's commands are in the pushbuffer, and the GPU has not been told of them (hook.h). On the
 * launching thread: the driver lets only one launch of a context come this far at a time. No lock, no allocation, no
 * system call, no read of the GPU's memory. */
enum queue_outcome queue_note(const struct launch *launch, const struct submission *submission,
                              struct launch_end end);

/* A launch that waits. */
struct queued {
	const void *function;
	uint64_t number;         /* of its end */
	struct qmd_mask noted;   /* the mask with which it was noted, in the bits of present TPCs */
	struct qmd_mask disable; /* what it has now, likewise */
	unsigned int ahead;      /* how many noted launches of the stream wait in front of it */
};

/* Says which mask the launch gets. False: it keeps the one that it has. Each mask that a launch gets must contain
 * a part of the GPU in which the launch fits, together with all that it had: the GPU may see some words of one
 * mask and some of another. */
typedef bool queue_chooser(void *data, const struct queued *launch, struct qmd_mask *disable);

/* Asks for each launch that has not started, the newest of a stream first, and returns how many have another mask
 * now. From any thread; a second one meanwhile returns 0. No system call. */
unsigned int queue_change(queue_chooser *choose, void *data);

/* The stream, or all of a context, is about to be destroyed: nothing of it is written from here on. This waits for
 * a change that is under way. */
void queue_forget_stream(CUstream stream, CUcontext context);
void queue_forget_context(CUcontext context);

/* In the child of a fork. */
void queue_after_fork(void);

#endif
