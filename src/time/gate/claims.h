/*
 * Those who have a higher claim to TPCs that this process may use (rules/lending.h). Our thread sees on the board who they
 * are (time/demand/peers.h); what each has in flight is read where it stands. Under the lock of the gate.
 */
#ifndef NVTASKSET_TIME_GATE_CLAIMS_H
#define NVTASKSET_TIME_GATE_CLAIMS_H

#include "state/kernels/counts.h"
#include "time/demand/peers.h"
#include "time/rules/lending.h"

#include <stdbool.h>
#include <stdint.h>

#define CLAIMS_MAX 16   /* what more of them have is not used */
#define CLAIMS_PLACES 4 /* contexts of each on this GPU; who has more always wants */

struct claims {
	uint32_t generation; /* changes with what follows */
	unsigned int count;
	struct claim {
		pid_t pid;
		unsigned int place_count;
		const struct counts_place *places[CLAIMS_PLACES];
		const _Atomic uint64_t *number; /* counts_view_number: as it was then; */
		uint64_t number_then;           /* with another one it may have more places */
		struct tpcset gives; /* TPCs that this process may use while it is idle, */
		struct tpcset takes; /* and those that it may not while it is not */
		uint64_t limit_ns;   /* LIMIT, */
		uint64_t borrowers;  /* which so many share */
		bool is_unknown;     /* when it is idle; then it is taken to be, or not: */
		bool is_open;
	} list[CLAIMS_MAX];
	const struct counts_place *own[CLAIMS_PLACES];
	unsigned int own_count;
	bool own_is_unknown;      /* what this process has in flight */
	bool has_part, is_narrow; /* some of `all_own`; not all of it: */
	struct tpcset all_own;    /* TPCs of this process, */
	struct tpcset part;       /* and those of them that nobody has a higher claim to */
	struct lending_claim idle[CLAIMS_MAX]; /* of each in the list; not compared */
};

/* What this process may do. */
struct claims_rules {
	uint32_t priority;
	bool borrows;
	struct tpcset borrow;
	bool is_known; /* when its own kernels end, on this GPU */
};

/* What the board says now, with a generation of its own if that is new. For our thread, after peers_look; without the lock. */
void claims_see(struct claims *made, const struct claims *before, struct pci_address pci, const struct claims_rules *rules);

/* Where this process counts on the GPU; `is_known`: exactly. */
void claims_see_own(struct claims *made, struct pci_address pci, bool is_known);

/* For each claim for how long it has been idle; 0: it wants. At most LENDING_IDLE_PART times its limit where it has been for longer. */
struct claims_idle {
	uint64_t now;            /* 0: the clock was not read, since all are at rest */
	uint32_t open;           /* a bit for each that is idle */
	uint64_t ns[CLAIMS_MAX];
};
void claims_look(struct claims *claims, struct claims_idle *idle);

/* What this process has in flight. */
uint64_t claims_own_in_flight(const struct claims *claims);

/* Its part, and the TPCs that these claims leave to it while they are idle. */
struct tpcset claims_tpcs(const struct claims *claims, uint32_t open);

#endif
