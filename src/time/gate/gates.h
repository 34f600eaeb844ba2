/*
 * What the gate knows: of the process, and of each GPU. Threads of the program use a GPU's under its lock, which nobody waits
 * for: who does not get it at once makes nothing wide.
 */
#ifndef NVTASKSET_TIME_GATE_GATES_H
#define NVTASKSET_TIME_GATE_GATES_H

#include "claims.h"
#include "gpu/qmd.h"
#include "in_flight.h"
#include "samples.h"
#include "time/rules/lending.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpu;

struct gate_state {
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

/* There are claims; no TPCs are left to the process; some are not. */
#define GATE_HAS_CLAIMS 1
#define GATE_HAS_NO_PART 2
#define GATE_IS_NARROW 4

/* Of one GPU. */
struct gate {
	atomic_bool is_locked;
	atomic_uint known;   /* GATE_*, of the claims: for threads without the lock */
	atomic_uint entering; /* launches whose calls have not ended since they went: they may not be counted yet */
	const struct gpu *gpu;
	struct claims claims;
	struct in_flight in_flight;
	struct samples samples;
	struct lending_debt debt;
	unsigned int follows; /* launches that were asked about by window_is_due */
	uint32_t open;        /* claims in whose TPCs launches that wait in the queue may be */
	struct gate_wide {    /* for launches that these claims allow */
		uint32_t generation, open;
		struct tpcset tpcs;
		unsigned int count;     /* of these TPCs */
		struct qmd_mask disable;
	} wide;
	struct qmd_mask part;     /* the same for the own part, of this generation, */
	uint32_t part_generation; /* and 1 more: 0 is none */
	uint64_t lent_ns[CLAIMS_MAX]; /* launches took so long in the TPCs of each, since our thread looked */
};

/* NULL before our thread has made it. */
struct gate *gates_of(const struct gpu *gpu);

/* Not in the launch path. False if there is no memory. */
bool gates_make(const struct gpu *gpu);

/* False if somebody else has it. */
static inline bool gate_lock(struct gate *gate)
{
	return !atomic_load_explicit(&gate->is_locked, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&gate->is_locked, true, memory_order_acquire);
}

/* Tries again and again, with pauses of so many microseconds: a thread has the lock for some microseconds, unless the
 * thread is stopped. */
bool gate_lock_soon(struct gate *gate, long pause_us);

static inline void gate_unlock(struct gate *gate)
{
	atomic_store_explicit(&gate->is_locked, false, memory_order_release);
}

/* The same for a GPU on which the process has a context: what it has in flight there is known from here on. */
void gates_open(const struct gpu *gpu);

/* In the child of a fork. */
void gates_after_fork(void);

#endif
