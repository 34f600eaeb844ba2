/*
 * The gate: which TPCs the launches of a client of MPS get now, and when they go. Under MPS, nobody's channels may be touched: so a
 * launch is decided about at the entry of its call (facts.md, "Callbacks"), where it may also wait. The law is that of
 * rules/lending.h. A graph is one launch, whose nodes are uploaded anew where it changes its TPCs; what is captured never waits. No
 * decision needs a lock, memory or a system call; a thread that waits sleeps and looks again, and our thread (keeper.h) sees who comes
 * and goes. A launch that is made inside of another one's call goes with that one. Signals are delivered while a launch waits.
 */
#ifndef NVTASKSET_TIME_GATE_GATE_H
#define NVTASKSET_TIME_GATE_GATE_H

#include "driver/calls.h"
#include "lengths.h"
#include "others.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpu;

/* --- the program's threads -------------------------------------------------------------------------------------------- */

/* Whether such a call is listened to; one begins, which may wait: whether its launch may use other TPCs than the last one; it ended:
 * whether this thread is in no other one. */
bool gate_wants_call(int id);
bool gate_call_begins(const struct call *call);
bool gate_call_ended(const struct call *call);

/* Whether what this thread launches is in no call that the gate has decided about, as fills and copies are. */
bool gate_is_outside(void);

/* The TPCs of the launch that this thread's call makes, where they are not those of its partition; outside of calls, the own part. In
 * the launch path. */
bool gate_tpcs(const struct gpu *gpu, struct tpcset *tpcs);

/* In the child of a fork. */
void gate_after_fork(void);

/* --- for keeper.c ----------------------------------------------------------------------------------------------------- */

struct gate_state {
	atomic_bool listens;      /* calls are announced to us: for ever */
	atomic_bool is_needed;    /* there was somebody with a higher claim, or a quota: until then all go */
	atomic_bool is_open;      /* launches are decided about */
	atomic_bool takes_any;    /* there is no window */
	atomic_bool is_spread;    /* the process had work on several GPUs when our thread looked */
	atomic_uint waiting;      /* so many threads wait */
	_Atomic uint32_t news;    /* what those sleep on that wait for the quota */
	_Atomic uint64_t left_ns; /* of the quota in this period; UINT64_MAX: there is none */
	_Atomic uint64_t held, held_ns;  /* launches that have waited */
	_Atomic uint64_t bounded;        /* episodes that have ended without */
	_Atomic uint64_t overruns;       /* launches beyond the own part that took longer than they may */
	atomic_bool has_more, is_too_long; /* a launch went there; one did not, since it takes too long */
};
extern struct gate_state gate_state __attribute__((visibility("hidden")));

/* From here on calls are listened to, and launches decided about; or no more: nothing waits. */
void gate_open(void);
void gate_close(void);

/* What is left of the quota. Our thread is rung when the process begins to use it. */
void gate_set_left(uint64_t ns);

/* Looks at the others on this GPU. False if threads still read the view before the last one: then nothing is new. Adds to `borrowed`
 * what is used there now beyond the process's own TPCs, as if it had been for so long. */
bool gate_see(const struct gpu *gpu, const struct others_rules *rules, uint64_t passed, struct segment_borrowed *borrowed);

/* No thread reads a view that was replaced. */
bool gate_former_are_free(void);

/* What was measured is looked at, on all GPUs. Returns when to look again. */
uint64_t gate_look(uint64_t now);

#endif
