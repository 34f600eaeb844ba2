/*
 * The gate's state: of the process, and of each GPU. Threads of the program use the state of a GPU under a lock. No
 * thread waits for the lock: without the lock, a launch is not wide.
 */
#pragma once

#include "claims.h"
#include "gpu/qmd.h"
#include "in_flight.h"

struct gpu;

struct gate_state {
	atomic_bool is_open;    /* launches are decided about */
	atomic_bool is_spread;  /* our thread saw work of the process on several GPUs */
	atomic_bool has_gpus;   /* the process has contexts on several GPUs */
	_Atomic uint64_t free_until; /* a launch had waited LENDING_EPISODE_NS: all go until then; 0: none had */
	atomic_uint waiting;    /* waiting threads */
	atomic_int blocked;     /* threads that launch, in calls that wait for the GPU */
	atomic_uint entering;   /* launches that went, in calls that have not ended: perhaps not counted yet */
	/* With work always in flight, the quota is spent then; 0: the quota is spent; UINT64_MAX: there is no quota. */
	_Atomic uint64_t spent_at;
	_Atomic uint64_t longest_hold;   /* for the quota */
	_Atomic uint64_t together;       /* launches that went, and may wait for further launches */
	_Atomic uint64_t together_ended; /* the number of first launches in `together` that have ended */
	atomic_bool group_is_together;   /* a group member had a launch of `together` in flight at our last look */
	atomic_bool graphs_are_together; /* a capture had a launch of `together`: any graph may have one, for ever */
	atomic_bool graphs_have_moved;   /* to other TPCs: all graphs are decided about, for ever */
	_Atomic uint64_t began; /* when the last launch with nothing in flight went */
	_Atomic uint64_t held, held_ns;  /* launches that have waited */
	_Atomic uint64_t bounded;          /* episodes that ended a wait */
	_Atomic uint64_t overruns;         /* wide launches longer than LIMIT */
	atomic_bool has_more, is_too_long; /* a launch was wide; a launch was too long to be wide */
};
extern struct gate_state gate_state __attribute__((visibility("hidden")));

#define GATE_HAS_NO_PART 1 /* claims leave the process no TPCs */
#define GATE_IS_NARROW 2   /* claims leave the process some TPCs, and not all */

/* Of one GPU. */
struct gate {
	atomic_bool is_locked;
	atomic_uint known;   /* 0, or a GATE_*, of the claims: for threads without the lock */
	const struct gpu *_Atomic gpu; /* NULL: not made */
	struct claims claims;
	struct in_flight in_flight;
	unsigned int follows; /* launches that were asked about by window_is_due */
	uint32_t opened;      /* claims with wide launches since the last call back */
	struct gate_tpcs {    /* of launches that may use the claims `open`: no claim in `part`, some in `wide` */
		bool is_known;     /* since the claims changed */
		uint32_t open;
		struct tpcset tpcs;
		unsigned int count; /* of the TPCs */
		struct qmd_mask disable;
	} part, wide;
	/* The time of launches in the TPCs of each claim, since our last look. Below 0 after a call back. */
	int64_t lent_ns[CLAIMS_MAX];
	unsigned int told[CLAIMS_MAX]; /* the number of borrowed TPCs of each claim, as a watcher knows */
};

/* NULL before the gate is made. */
struct gate *gates_of(const struct gpu *gpu);

/* Makes the gate at the first call. */
struct gate *gates_make(const struct gpu *gpu);

/* False if another thread has the lock. */
static inline bool gate_lock(struct gate *gate)
{
	return !atomic_load_explicit(&gate->is_locked, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&gate->is_locked, true, memory_order_acquire);
}

/* Tries again and again, with pauses: a thread has the lock for some microseconds, unless the thread is stopped. */
bool gate_lock_soon(struct gate *gate, long pause_us);

static inline void gate_unlock(struct gate *gate)
{
	atomic_store_explicit(&gate->is_locked, false, memory_order_release);
}

/* A context has been made on the GPU, and has not launched. Makes the gate: the own work in flight is known from here
 * on. */
void gates_open(const struct gpu *gpu);

void gates_after_fork(void);
