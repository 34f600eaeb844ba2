/* What the program's threads (turnstile.c) and ours (turnstile_thread.c) have in common. turnstile.h says what it is for. */
#ifndef NVTASKSET_TIME_GATE_TURNSTILE_PARTS_H
#define NVTASKSET_TIME_GATE_TURNSTILE_PARTS_H

#include "base/brief_lock.h"
#include "driver/gpus.h"
#include "in_flight.h"
#include "turnstile.h"

#include <stdatomic.h>

/* So many launches are taken at once when they have ended. */
#define TURNSTILE_TAKEN 64

/* One GPU's. */
struct gate {
	struct pci_address pci;
	struct holding holding;
	struct in_flight in_flight;
	struct rivals rivals; /* whom launches have to give way to, */
	bool is_aside;                /* but for those that step aside */
	unsigned int ready;           /* so many launches wait, and not for the quota */
	atomic_uint gone;             /* of them, so many have gone without the lock */
};

/* Under the lock, but for what is atomic. */
struct turnstile {
	struct brief_lock lock;
	struct gate gates[GPUS_MAX];
	struct gate *used[GPUS_MAX]; /* those of GPUs on which this process has launched, or is about to; they stay */
	unsigned int used_count;
	struct turnstile_rules rules;
	struct reserve reserve;            /* of all GPUs together */
	atomic_bool is_open;               /* launches are held where a rule says so */
	atomic_bool listens;               /* calls are announced to us: from the first time on */
	_Atomic int64_t gone_ns;           /* what launches waited for that have gone without the lock, */
	atomic_uint unseen;                /* and how many have */
	atomic_bool is_blind;              /* launches went whose ends nobody sees */
	atomic_uint waiting;               /* so many threads sleep, or are about to */
	_Atomic uint32_t news;             /* what they sleep on: how often something has changed */
};
extern struct turnstile turnstile __attribute__((visibility("hidden")));

static inline struct gate *turnstile_gate_of(const struct gpu *gpu)
{
	return &turnstile.gates[gpus_number(gpu)];
}

/* Whether there is a quota. */
static inline bool turnstile_limits(const struct turnstile_rules *rules)
{
	return rules->run_ns < rules->period_ns;
}

/* Under the lock: this process launches on that GPU; launches that went without it wait no more; a launch has ended, and has used so much. */
void turnstile_use_gate(struct gate *gate, struct pci_address pci);
void turnstile_put_right(struct gate *gate);
void turnstile_settle(struct gate *gate, struct in_flight_launch *launch, uint64_t used_ns, uint64_t now);

#endif
