/*
 * Those who have a higher claim to TPCs that this process may use. Our thread makes a view of them from the board
 * (time/demand/peers.h); threads of the program read it at the entry of each launch, and in it what the others have in
 * flight, where it stands. Nothing but `owner` is changed once it is published.
 */
#ifndef NVTASKSET_TIME_GATE_OTHERS_H
#define NVTASKSET_TIME_GATE_OTHERS_H

#include "state/kernels/counts.h"
#include "time/demand/peers.h"
#include "time/rules/lending.h"

#include <stdbool.h>
#include <stdint.h>

#define OTHERS_MAX 16   /* what more of them have is not used */
#define OTHERS_PLACES 4 /* contexts of each on this GPU; who has more always wants */

struct others_on_gpu {
	uint32_t generation; /* the same for views in which the same TPCs are whose they were */
	unsigned int count;
	struct other {
		const struct counts_place *places[OTHERS_PLACES];
		unsigned int place_count;
		const _Atomic uint64_t *number; /* counts_view_number: as it was then; */
		uint64_t number_then;           /* with another one it may have more places */
		struct lending_owner owner;
		struct tpcset gives; /* TPCs that this process may use while it is idle, */
		struct tpcset takes; /* and those that it may not while it is not */
		uint64_t hold_ns;    /* it must have been idle for so long */
		bool is_unknown;     /* when it is idle; then it is taken to be, or not: */
		bool is_open;
		pid_t pid;
		uint64_t start;
	} list[OTHERS_MAX];
	const struct counts_place *own[OTHERS_PLACES];
	unsigned int own_count;
	bool own_is_unknown; /* what this process has in flight */
	struct tpcset all_own; /* TPCs of this process, */
	struct tpcset part;    /* and those of them that nobody has a higher claim to: */
	bool has_part, is_narrow; /* some; not all */
	uint64_t limit_ns, batch_ns;
};

/* What this process may do. */
struct others_rules {
	uint32_t priority;
	bool borrows;
	struct tpcset borrow;
	bool is_known; /* when its own kernels end, on this GPU */
};

/* `before` is the view that it will replace. For our thread, after peers_look. */
void others_see(struct others_on_gpu *made, const struct others_on_gpu *before, struct pci_address pci,
                const struct others_rules *rules);

/* A bit for each of them whose TPCs are open now. */
uint32_t others_open(struct others_on_gpu *others);

/* Whether any of these TPCs are the process's own. */
bool others_open_own(const struct others_on_gpu *others, uint32_t open);

/* What this process has in flight. */
uint64_t others_own_in_flight(const struct others_on_gpu *others);

/* Its part, and the TPCs that are open by these bits. */
struct tpcset others_tpcs(const struct others_on_gpu *others, uint32_t open);

#endif
