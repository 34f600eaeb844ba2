/*
 * Launches that wait in the queues of their streams, and whose masks can still be changed (hardware.md, "Queued
 * launches").
 *
 * Until the GPU fetches the commands of a launch, a mask that is written into the descriptor among these commands
 * acts. The memory of the commands is used again only after the GPU has processed the commands, and the GPU does not
 * process them before the launch ahead in the stream has ended. So a launch is noted only behind a launch of the same
 * stream that has not ended, and nothing is written once that one has.
 *
 * - The look at that end and the store are one restartable sequence (swap.h), and the store expects the exact word that
 *   was there. What remains is a virtual processor that is taken away between the look and the store for as long as
 *   the driver needs to fill the pushbuffer of the channel once, some 4 MB: the store then meets other commands, whose
 *   word at this place must equal the mask's. The bits of absent TPCs, which the GPU ignores, have a tag that no other
 *   launch of the process has, so an equal word can only be in a part of a mask in which all TPCs are present.
 * - Other work of the stream between both launches (a copy, a fill, a graph, a function of the host) changes nothing of
 *   that: the commands stay where they are until all work ahead has ended. But after the end of the launch ahead the
 *   other work takes its time, and meanwhile nothing can be changed; and a launch behind another engine's work may lie
 *   in another channel, and be fetched at once. So behind other work nothing is noted.
 * - A wait for an event is in the stream's own order as well, and adds no work to the stream. A launch behind such a wait is noted as long as the
 *   launch ahead of both has not ended. Once that one has, the launch may wait for any time, and is not noted.
 * - A launch that may begin before the launch ahead has ended (programmatic dependent launch) is never noted, nor is the
 *   launch behind such a launch: of both it is not known when they are processed.
 *
 * Nothing here is about partitions: others say which mask a launch gets.
 */
#ifndef NVTASKSET_DRIVER_PUSHBUFFER_QUEUE_H
#define NVTASKSET_DRIVER_PUSHBUFFER_QUEUE_H

#include "driver/hook.h"
#include "gpu/qmd.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether launches can be noted in this process. Call it outside of the launch path, and first when the driver is
 * initialised: at the program's end, functions run in the opposite order, and masks must not be changed any more once the
 * driver gives its memory back. One thread at a time. */
bool queue_prepare(void);

/* --- launching ---------------------------------------------------------------------------------------------------- */

/* What is ahead of a stream's next launch. */
enum queue_front {
	QUEUE_FRONT_UNKNOWN, /* other work, a wait, or nothing known */
	QUEUE_FRONT_ENDED,   /* the last work was a launch, and has ended */
	QUEUE_FRONT_RUNS,    /* the last work was a launch, and has not ended */
};

/* What became of a launch. */
enum queue_outcome {
	QUEUE_UNKNOWN = QUEUE_FRONT_UNKNOWN,
	QUEUE_ALONE = QUEUE_FRONT_ENDED, /* it may start at once */
	QUEUE_NOTED = QUEUE_FRONT_RUNS,
	QUEUE_LARGE,     /* the commands are 64 KiB or more */
	QUEUE_NO_MASK,   /* the descriptor has no valid mask */
	QUEUE_NOT_FOUND, /* the descriptor is not in the commands, or more than once */
	QUEUE_STREAMS,   /* more streams than there are places */
};

/* A launch's commands are in the pushbuffer, and the GPU has not been told of them (hook.h). Its end is known
 * (frame.end): a timestamp of its own, which is in its descriptor. On the launching thread: the driver lets only one
 * launch of a context come this far at a time. No lock, no allocation, no system call, no read of the GPU's memory.
 *
 * frame.cookie is the caller's. frame.turn gets the launch's number in its stream, where numbers rise by 1, whether
 * launches are noted or not; 0 if the stream has no place. After QUEUE_NOT_FOUND, the commands may come later in the
 * call. */
enum queue_outcome queue_note(struct launch *launch, const struct submission *submission);

/* Work that is not a launch whose end is known has been submitted, or will be: the next launch of each stream is behind
 * something unknown. From any thread. */
void queue_interrupt(void);

/* The stream waits for an event. */
void queue_wait(CUstream stream, CUcontext context);

/* At most 40 instructions; on a thread that may launch there. */
enum queue_front queue_front(CUstream stream, CUcontext context);

/* Whether the next launch of this thread will be noted, unless its commands do not allow that. */
static inline bool queue_is_behind(const struct launch *launch)
{
	return queue_front(launch->frame.stream, launch->context) == QUEUE_FRONT_RUNS;
}

/* Whether the last work of the stream was a launch whose end is known. */
static inline bool queue_knows(CUstream stream, CUcontext context)
{
	return queue_front(stream, context) != QUEUE_FRONT_UNKNOWN;
}

/* --- changing ----------------------------------------------------------------------------------------------------- */

/* A launch that waits. */
struct queued {
	uint64_t turn, cookie;        /* as for queue_note */
	unsigned int ahead;           /* how many launches of the stream are in front of it and have not ended: noted or not, the running one
	                               * among them */
	struct launch_end front, end; /* of the launch right in front of it, and its own */
	struct qmd_mask noted;        /* the mask with which it was noted, in the bits of present TPCs */
	struct qmd_mask disable;      /* what it has now, likewise */
};

enum queue_answer {
	QUEUE_LEAVE, /* it keeps its mask */
	QUEUE_CHANGE,
	QUEUE_STOP, /* it keeps its mask; the launches behind it in its stream are not visited */
};

/* Says which mask the launch gets. Each mask that a launch gets must contain a part of the GPU in which the launch fits,
 * together with all that it had: the GPU may see some words of one mask and some of another. */
typedef enum queue_answer queue_visitor(void *data, const struct queued *launch, struct qmd_mask *disable);

/* Visits the launches that were noted and have not started: stream by stream, from the oldest one to the newest. With
 * `again` all of them; otherwise those behind the last one that was visited and not answered by QUEUE_STOP since. Returns
 * how many have another mask now. From any thread; a second one meanwhile returns 0. No system call. The cost is that of
 * the launches that are visited, and of a search among those that have ended since the last time. */
unsigned int queue_walk(bool again, queue_visitor *visit, void *data);

/* --- forgetting ----------------------------------------------------------------------------------------------------- */

/* The stream, all of a context, or all of the process is about to go: once this has returned, nothing of it is written.
 * It does not wait for a thread that is changing masks. Has a system call. */
void queue_forget_stream(CUstream stream, CUcontext context);
void queue_forget_context(CUcontext context);
void queue_forget_all(void);

/* In the child of a fork. */
void queue_after_fork(void);

#endif
