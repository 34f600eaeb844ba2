/*
 * Streams in which a launch may not start at once, since a call before it makes the stream wait for an event, a value or the host.
 * They do until a launch that came after such a call has ended. Streams whose numbers are alike are taken for one.
 */
#ifndef NVTASKSET_DRIVER_STREAMS_H
#define NVTASKSET_DRIVER_STREAMS_H

#include "cuda.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A number: two handles are those of many streams, one in each context, or one of each thread there. */
uintptr_t streams_number(CUstream stream, CUcontext context);

/* In the lower half a bit for those that wait, in the upper one for those of them into which something was launched since. */
extern _Atomic uint64_t streams_waiting __attribute__((visibility("hidden")));

static inline bool streams_some_wait(void)
{
	return atomic_load_explicit(&streams_waiting, memory_order_relaxed) != 0;
}

/* This stream waits for a value or the host; a launch goes into it. From any thread. */
void streams_wait(CUstream stream, CUcontext context);
void streams_launch(CUstream stream, CUcontext context);

/* It waits for an event. This comes when launches have ended that are in flight now, and they count before all that is launched behind
 * it. So it matters, and this returns true, where a stream waits for the host, where launches of other GPUs do not count, or where the
 * process has an event of another process, whose launches do not count either. */
bool streams_wait_for_event(CUstream stream, CUcontext context, bool has_other_gpus);

/* From here on, the process has one. */
void streams_have_foreign_event(void);

/* Whether a launch into this stream may have to wait. `is_idle`: nothing of the process is in flight. */
bool streams_may_wait(CUstream stream, CUcontext context, bool is_idle);

/* Whether the next launch into the stream is the first launch behind a wait, as far as is known. */
bool streams_next_waits(CUstream stream, CUcontext context);

/* In the child of a fork. */
void streams_forget(void);

#endif
