/*
 * The gate of a client of MPS: which TPCs a launch gets now, by the law of rules/lending.h; and when a launch goes, in
 * a program without TPCs of its own or with a quota.
 *
 * Under MPS, no channel may be touched. So a launch is decided about from the moment when the launch is in the
 * pushbuffer (window.h). Launches of few programs wait at the entry of the call before (hold.h; facts.md, "Callbacks").
 * The answer for a call is in the frame of the call (driver/frame.h). No decision needs memory or a system call.
 *
 * A graph is one launch, and is decided about at the call: with other TPCs, the nodes are uploaded anew. A captured
 * launch never waits. A launch of a foreign subscriber in a callback never waits either. A launch within a launch's
 * call goes with the outer launch.
 */
#pragma once

#include "driver/hook.h"

#include <stdatomic.h>

/* Launches are decided about: while a higher claim or a quota matters, and for ever once a graph has moved. From the
 * first time on, waits are heard: a launch may come behind a wait of before. A resting program's waits for the GPU are
 * heard. */
extern atomic_bool gate_listens __attribute__((visibility("hidden")));
extern atomic_bool gate_hears_waits __attribute__((visibility("hidden")));
extern atomic_bool gate_hears_host __attribute__((visibility("hidden")));

/* Whether the gate listens to a call. A call begins, and may wait; the call has ended. */
static inline bool gate_wants_call(int id)
{
	return (atomic_load_explicit(&gate_listens, memory_order_relaxed) &&
	        calls_are(id, CALLS_LAUNCHES | CALLS_RUNS_GRAPH)) ||
	       (atomic_load_explicit(&gate_hears_waits, memory_order_relaxed) && calls_are(id, CALLS_WAITS)) ||
	       (atomic_load_explicit(&gate_hears_host, memory_order_relaxed) && calls_block(id));
}
void gate_call_begins(const struct call *call);
void gate_call_ended(const struct call *call);

/* The launch of this thread's call is in the pushbuffer, and the GPU has not been told. `end`: of the launch. */
void gate_submits(struct launch *launch, const struct submission *submission, struct launch_end end);

void gate_after_fork(void);
