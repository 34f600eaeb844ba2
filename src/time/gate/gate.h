/*
 * The gate: which TPCs the launches of a client of MPS get now, by the law of rules/lending.h, and when launches go of a program that
 * has none of its own, or a quota. Under MPS, nobody's channels may be touched: so a launch is decided about at the entry of its call
 * (facts.md, "Callbacks"), where few programs' launches also wait (hold.h); and again while it waits in the queue of its stream
 * (window.h). No decision needs a lock that somebody waits for, memory or a system call. Our thread (keeper.h) sees who comes and
 * goes. A graph is one launch, whose nodes are uploaded anew where it changes its TPCs. What is captured never waits, nor what
 * another subscriber launches in a callback; a launch inside of another one's call goes with it. The answer for a call is in its
 * frame (driver/calls.h).
 */
#ifndef NVTASKSET_TIME_GATE_GATE_H
#define NVTASKSET_TIME_GATE_GATE_H

#include "driver/calls.h"
#include "driver/hook.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Calls are announced to us: since there was somebody with a higher claim, or a quota; for ever. */
extern atomic_bool gate_listens __attribute__((visibility("hidden")));

/* Whether such a call is listened to; one begins, which may wait; it has ended. */
static inline bool gate_wants_call(int id)
{
	return atomic_load_explicit(&gate_listens, memory_order_relaxed) &&
	       calls_are(id, CALLS_LAUNCHES | CALLS_RUNS_GRAPH | CALLS_WAITS);
}
void gate_call_begins(const struct call *call);
void gate_call_ended(const struct call *call);

/* The launch of this thread's call is in the pushbuffer, and the GPU has not been told of it. Its end; a number of 0: not known. */
void gate_submits(struct launch *launch, struct launch_end end);

/* A call that has waited for work on a GPU has ended: what else has ended is seen, and how long it took. */
void gate_synchronized(const struct call *call);

/* A context has been made: before it launches. */
void gate_context_created(CUcontext context);

/* In the child of a fork. */
void gate_after_fork(void);

#endif
