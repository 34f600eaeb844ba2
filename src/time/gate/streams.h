/*
 * Streams in which a launch may not start at once, since a call before it makes the stream wait for an event, a value or the host.
 * They do until a launch that came after such a call has ended.
 */
#ifndef NVTASKSET_TIME_GATE_STREAMS_H
#define NVTASKSET_TIME_GATE_STREAMS_H

#include "driver/cuda.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How often any has waited; or more, where some could not be remembered. */
extern _Atomic uint64_t streams_waiting __attribute__((visibility("hidden")));
#define STREAMS_LOST (UINT64_C(1) << 63)

/* This stream waits; a launch went into it. From any thread. */
void streams_wait(CUstream stream);
void streams_launched(CUstream stream);

bool streams_look(CUstream stream, bool is_idle);

/* Whether a launch into this stream may have to wait. `is_idle`: nothing of the process is in flight. */
static inline bool streams_may_wait(CUstream stream, bool is_idle)
{
	return atomic_load_explicit(&streams_waiting, memory_order_relaxed) > 0 && streams_look(stream, is_idle);
}

void streams_forget(void);

#endif
