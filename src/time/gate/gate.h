/*
 * The gate: which TPCs the launches of a client of MPS get now, and when they go, by the law of rules/lending.h. Under MPS,
 * nobody's channels may be touched: so a launch is decided about at the entry of its call (facts.md, "Callbacks"), where it
 * may also wait. No decision needs a lock, memory or a system call; a thread that waits sleeps and looks again, and our thread
 * (keeper.h) sees who comes and goes. A graph is one launch, whose nodes are uploaded anew where it changes its TPCs. What is
 * captured never waits, nor what another subscriber launches in a callback; a launch inside of another one's call goes with it.
 * Signals are delivered while a launch waits.
 */
#ifndef NVTASKSET_TIME_GATE_GATE_H
#define NVTASKSET_TIME_GATE_GATE_H

#include "driver/calls.h"
#include "launch/space/epoch.h"
#include "state/kernels/counts_read.h"
#include "time/rules/flight.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpu;

/* Whether such a call is listened to; one begins, which may wait: whether it goes elsewhere; it ended: whether in no other. */
bool gate_wants_call(int id);
bool gate_call_begins(const struct call *call);
bool gate_call_ended(const struct call *call);

/* What a thread's last launch was decided from: while none of it changes, launches of the same kernel go as it did. */
struct gate_last {
	CUcontext context; /* NULL: nothing is remembered */
	struct call_kernel kernel;
	struct counts_words words; /* their sum is with the epoch of the world */
	const _Atomic uint64_t *launched, *ended; /* as long as there are at most so many between */
	int64_t most;
	struct flight *flight; /* to which it adds `more` */
	uint64_t more;
};

/* This thread's calls; belongs to gate.c, and is declared here for the functions below alone. */
#define GATE_AS_BEFORE 1 /* it is in a call that goes as the last one, */
#define GATE_DECIDED 2   /* or in one that was decided about; */
#define GATE_NESTED 4    /* and in one inside of that, for each */
struct gate_own {
	unsigned int calls;
	struct gate_last last;
};
extern __thread struct gate_own gate_own __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A call of calls_launch_kernel begins: whether it goes as the last one; and ended: whether it did. Otherwise: above. */
static inline bool gate_goes_as_before(CUcontext context, const struct call_kernel *kernel)
{
	const struct gate_last *last = &gate_own.last;

	if (gate_own.calls != 0 || last->context != context || !calls_is_same_kernel(&last->kernel, kernel) ||
	    epoch_of_world() + counts_words_sum(&last->words) != last->words.sum ||
	    (int64_t)(atomic_load_explicit(last->launched, memory_order_relaxed) -
	              atomic_load_explicit(last->ended, memory_order_relaxed)) > last->most)
		return false;
	flight_add_more(last->flight, last->more);
	gate_own.calls = GATE_AS_BEFORE;
	return true;
}

static inline bool gate_went_as_before(void)
{
	bool did = gate_own.calls == GATE_AS_BEFORE;

	if (did)
		gate_own.calls = 0;
	return did;
}

/* The next one is decided about. */
static inline void gate_forget(void)
{
	gate_own.last.context = NULL;
}

/* Whether what this thread launches is in no call that the gate has decided about, as fills and copies are. */
bool gate_is_outside(void);

/* The TPCs of the launch that this thread's call makes, where they are not those of its partition; outside of calls, the own
 * part. In the launch path. */
bool gate_tpcs(const struct gpu *gpu, struct tpcset *tpcs);

/* In the child of a fork. */
void gate_after_fork(void);

#endif
