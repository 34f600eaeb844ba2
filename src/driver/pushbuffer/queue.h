/*
 * Launches in the queues of their streams, whose masks can still be changed (hardware.md, "Queued launches").
 *
 * Until the GPU fetches the commands of a launch, a mask takes effect if it is written into the descriptor among the
 * commands. The memory of the commands is used again only after the GPU has processed the commands, and the GPU does
 * not process them before the launch ahead in the stream has ended. So a launch is noted only behind a running launch
 * of the same stream, and no mask is written once the launch ahead has ended.
 *
 * - The look at the end and the store are a single restartable sequence (swap.h), and the store expects the exact old
 *   word. What remains is a virtual processor taken away by its host between look and store, for as long as the
 *   driver needs to fill the pushbuffer of the channel once, some 4 MB. Then the store meets new commands, and takes
 *   place only if their word equals the word of the mask. The GPU ignores the bits of absent TPCs, so these have a
 *   tag, different for each launch of the process: an equal word can only be in a part of a mask without absent TPCs.
 * - Foreign work of the stream between both launches (a copy, a fill, a graph) does not move the commands: they stay
 *   until all work ahead has ended. A launch behind foreign work is noted as long as the launch ahead of the work has
 *   not ended. Later the mask stays as it is. Behind the work of another engine, a launch may lie in another channel,
 *   where the GPU fetches the commands at once: then a change has no effect.
 * - A wait for an event keeps the order of the stream, and adds no work. A launch behind a wait is noted as long as
 *   the launch ahead of the wait has not ended. Later the launch may wait for any time, and is not noted.
 * - A launch with programmatic dependent launch may begin before the launch ahead has ended, and is never noted. The
 *   GPU fetches the launch behind early, too: so launches with fewer than QUEUE_FETCHED ahead are not changed.
 * - Before a checkpoint (cuCheckpoint, published) all submitted work ends, and no call comes in before the restore: no
 *   launch waits then.
 *
 * No file in this directory knows partitions: the caller says which mask a launch gets.
 */
#pragma once

#include "driver/hook.h"
#include "gpu/qmd.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether launches can be noted in this process. Not for the launch path, a single thread at a time. */
bool queue_prepare(void);

/* A context has been made. Functions for the program's end run in the opposite order of their registration: so from
 * here on, no mask is changed any more when the driver gives the memory of its contexts back. */
void queue_context_created(void);

/* Whether queue_walk may change masks from here on; at first yes. Otherwise launches have turns and ends, and no byte
 * of their commands or of the ring is written. */
void queue_change_masks(bool may);

/* --- launching -------------------------------------------------------------------------------------------------- */

/* What became of a launch. */
enum queue_outcome {
	QUEUE_UNKNOWN,   /* behind foreign work, a wait, or nothing known */
	QUEUE_ALONE,     /* the last work was a launch, and has ended: the launch may start at once */
	QUEUE_NOTED,     /* the last launch has not ended; foreign work may be in between */
	QUEUE_KEPT,      /* the launch waits, and no caller may change the mask */
	QUEUE_LARGE,     /* the commands are 64 KiB or more */
	QUEUE_NO_MASK,   /* the descriptor has no valid mask */
	QUEUE_NOT_FOUND, /* the descriptor is not in the commands, or more than once */
	QUEUE_STREAMS,   /* more streams than there are places */
};

/* The commands of a launch are in the pushbuffer, and the GPU has not been told of the commands (hook.h). The end of
 * the launch is known: frame.end, a timestamp of its own in the descriptor. On the launching thread: the driver lets
 * only a single launch of a context come this far at a time. No lock, no allocation, no system call, no read of the
 * GPU's memory.
 *
 * frame.cookie is the caller's, and with frame.keeps_mask the mask stays. frame.turn gets the number of the launch in
 * its stream, or 0 without a place. Numbers rise by 1 with each launch, noted or not. frame.front gets the end of the
 * launch ahead, or a number of 0 if nothing is known to run ahead. After QUEUE_NOT_FOUND, the commands may come later
 * in the call. */
enum queue_outcome queue_note(struct launch *launch, const struct submission *submission);

/* Likewise, of a launch that was not noted just now: the launch may use the TPCs, too, that `disable` enables. False,
 * and nothing is changed, if the mask must stay or the descriptor is not found. */
bool queue_widen(const struct launch *launch, const struct submission *submission, const struct qmd_mask *disable);

/* Work has been submitted, or will be, that may wait for any time. The next launch of each stream is behind unknown
 * work. From any thread. */
void queue_interrupt(void);

/* Foreign work has been submitted: a fill, a copy, or a launch without a known end. Likewise, except behind a launch
 * that runs: a launch with a known end begins after all work of the stream, and so after the launch that runs. */
void queue_pass_foreign(void);

/* The stream waits for an event. */
void queue_wait(CUstream stream, CUcontext context);

/* --- changing --------------------------------------------------------------------------------------------------- */

/* A launch that waits. */
struct queued {
	uint64_t turn, cookie;        /* as for queue_note */
	unsigned int ahead;           /* launches of the stream in front that have not ended, with the running one */
	uint64_t front_cookie;        /* of the launch right in front */
	struct launch_end front, end; /* likewise, and its own */
	struct qmd_mask noted;        /* the mask at the note, in the bits of present TPCs */
	struct qmd_mask disable;      /* the mask now, likewise */
	bool keeps_mask;              /* no answer changes the mask, and the masks above are not known */
	bool was_changed;             /* by the walk before */
	bool is_behind_changes;       /* neither the launch nor a launch behind was changed */
	bool is_behind_foreign;       /* foreign work is right in front, perhaps in another channel */
};

enum queue_answer {
	QUEUE_LEAVE, /* the launch keeps its mask */
	QUEUE_CHANGE,
	QUEUE_STOP, /* the launch keeps its mask, and the launches behind in its stream are not visited */
};

/* Says which mask the launch gets. All masks of a launch, from first to last, must have a part of the GPU in common
 * with room for the launch: the GPU may see some words of an old mask and some of a new mask. A mask that has no TPC in
 * common with the mask now is not written. */
typedef enum queue_answer queue_visitor(void *data, const struct queued *launch, struct qmd_mask *disable);

/* The GPU has fetched launches with fewer ahead (hardware.md, "Queued launches"), except a launch that is being
 * submitted: changes of fetched launches have no effect. */
#define QUEUE_FETCHED 2

/* Visits the launches that have not started: stream by stream, from the oldest to the newest. With `again` the
 * walk begins with the oldest launch, and so does the next walk; otherwise behind the last launch that was visited
 * and not answered by QUEUE_STOP. Returns the number of launches with a new mask. From any thread; a second thread
 * meanwhile gets -1. No system call. The cost: the visited launches, and a search among launches that have ended since
 * the last time. */
int queue_walk(bool again, queue_visitor *visit, void *data);

/* --- forgetting ------------------------------------------------------------------------------------------------- */

/* The stream, or the context (NULL: every context), is about to go: after the return, no mask there is written. The
 * caller does not wait for threads in queue_walk. A system call. */
void queue_forget_stream(CUstream stream, CUcontext context);
void queue_forget_context(CUcontext context);

/* In the child of a fork. */
void queue_after_fork(void);
