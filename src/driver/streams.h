/*
 * Streams in which a launch may not start at once, since an earlier call makes the stream wait for an event, a value or
 * the host. The stream counts as waiting until a launch after the call has ended. A stream has one of 32 bits: streams
 * with the same bit count as a single stream.
 */
#pragma once

#include "cuda.h"

#include <stdatomic.h>
#include <stdbool.h>

/* A number for a stream. Two handles stand for many streams: a stream of each context, or of each thread there. */
uintptr_t streams_number(CUstream stream, CUcontext context);

/* The lower half has a bit for each waiting stream, the upper half a bit for each with a launch since. */
extern _Atomic uint64_t streams_waiting __attribute__((visibility("hidden")));

static inline bool streams_some_wait(void)
{
	return atomic_load_explicit(&streams_waiting, memory_order_relaxed) != 0;
}

/* The stream waits for a value or the host; a launch goes into the stream. From any thread. */
void streams_wait(CUstream stream, CUcontext context);
void streams_launch(CUstream stream, CUcontext context);

/* The stream waits for an event. Normally the event comes when launches now in flight on the same GPU have ended: the
 * wait is ignored, with false. The stream counts as waiting, with true, if the event may come later: the process uses
 * other GPUs, a stream waits for a value or the host, or the process has an event of another process. */
bool streams_wait_for_event(CUstream stream, CUcontext context, bool has_other_gpus);

/* From here on, the process has an event of another process. */
void streams_note_foreign_event(void);

/* Whether a launch into the stream may have to wait. `is_idle`: nothing of the process is in flight. */
bool streams_may_wait(CUstream stream, CUcontext context, bool is_idle);

/* Whether the next launch into the stream is the first launch behind a wait, as far as is known. */
bool streams_next_waits(CUstream stream, CUcontext context);

/* In the child of a fork. */
void streams_forget(void);
