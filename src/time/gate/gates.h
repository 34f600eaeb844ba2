/*
 * What is seen at the gates of all GPUs, and is left there by each launch, as it passes (passing.c). Threads of the program use the
 * first half of this at the same time, and our thread the second.
 */
#ifndef NVTASKSET_TIME_GATE_GATES_H
#define NVTASKSET_TIME_GATE_GATES_H

#include "launch/account/lengths.h"
#include "others.h"
#include "time/rules/flight.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct call;
struct gate_last;
struct gpu;

struct gate_state {
	atomic_bool listens;    /* calls are announced to us: since there was somebody with a higher claim, or a quota; for ever */
	atomic_bool is_open;    /* launches are decided about */
	atomic_bool takes_any;  /* there is no window */
	atomic_bool is_spread;  /* the process had work on several GPUs when our thread looked; */
	atomic_bool has_gpus;   /* and has contexts on several */
	_Atomic uint64_t free_until; /* after an episode, launches go until then; 0: they do not */
	atomic_uint waiting;    /* so many threads wait */
	_Atomic uint64_t spent_at;       /* the quota, if something is always in flight; 0: it is; UINT64_MAX: there is none */
	_Atomic uint64_t longest_hold;   /* for the quota */
	_Atomic uint64_t together;       /* launches that have gone, and that may wait for other launches */
	_Atomic uint64_t together_ended; /* none of the first so many is in flight */
	atomic_bool group_is_together;   /* another member of the group had one in flight when our thread looked */
	atomic_bool graphs_are_together; /* one was captured: any graph may have it, for ever */
	_Atomic uint64_t began; /* where our thread was rung for a launch that had found nothing in flight: it went then */
	_Atomic uint64_t held, held_ns;  /* launches that have waited */
	_Atomic uint64_t bounded, overruns; /* episodes that have ended without; launches that took longer than they may */
	atomic_bool has_more, is_too_long; /* a launch went there; one did not, since it takes too long */
};
extern struct gate_state gate_state __attribute__((visibility("hidden")));

/* Threads that are stopped while they read keep one each. */
#define GATE_VIEWS 4

/* Of one GPU, by gpus_number. */
struct gate {
	struct others_on_gpu views[GATE_VIEWS];
	atomic_uint current;         /* which of them */
	atomic_uint readers[GATE_VIEWS];
	atomic_uint entering;        /* launches whose calls have not ended since they went: they may not be counted yet */
	struct flight flight;
	_Atomic uint32_t last_how;   /* the last launch went */
	struct measure measure;
};
extern struct gate gates[] __attribute__((visibility("hidden")));

/* While a thread reads a view, our thread does not write it (tests/litmus/view.litmus, left.litmus). */
struct others_on_gpu *gate_enter(struct gate *gate);
void gate_leave(struct gate *gate, const struct others_on_gpu *view);

/* For our thread: a view that no thread reads, and that is not the current one; NULL if there is none. */
struct others_on_gpu *gate_unread(struct gate *gate);

/* Looks whether what is measured has ended. */
void gate_measure(struct gate *gate, struct others_on_gpu *others);

/* Where a launch goes: the TPCs that it may use, as a number, with the view's generation above it. None: its partition. */
#define WHERE_PART UINT32_C(0x10000)
#define WHERE_MORE UINT32_C(0x20000) /* and a bit for each of the others whose TPCs are open; */
#define WHERE_OWN UINT32_C(0x40000)  /* but only those of its partition */

static inline uint32_t where_open(uint32_t how)
{
	return how & WHERE_MORE ? how & (WHERE_PART - 1) : 0;
}

/* A launch has come, and goes when this returns; then `last` says which ones go like it. Its call has ended. */
struct passage {
	uint64_t where;
	bool is_entering, is_measured;
	struct length *moved; /* a graph whose nodes the call uploads anew */
};
struct passage pass(struct gate *gate, const struct call *call, struct gate_last *last);
void passed(struct gate *gate, const struct call *call, const struct passage *passage);

/* In the child of a fork. */
void gates_after_fork(void);

#endif
