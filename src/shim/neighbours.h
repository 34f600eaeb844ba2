/*
 * The other programs on this process's GPUs that were given a priority or a weight, as the rules see them: from the board
 * (state/board.h). While somebody else is there, this process's own claim is written at each look.
 *
 * For our thread alone, but for the last one.
 */
#ifndef NVTASKSET_SHIM_NEIGHBOURS_H
#define NVTASKSET_SHIM_NEIGHBOURS_H

#include "sight.h"
#include "state/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* What this process has of the time, and what it does just now. */
struct neighbours_self {
	uint32_t priority; /* 0 … 99 */
	uint32_t weight;   /* 1 … 10000 */
	bool is_aside;
	bool is_client;    /* of MPS */
	uint64_t served_ns; /* shim/weight.h; UINT64_MAX: it has not seen the others yet */
};

/* Of all GPUs on which this process has a context, the one on which it has most to give way to. */
struct neighbours {
	bool any;                   /* somebody else is there */
	bool has_higher;            /* somebody of a higher priority is there, */
	bool higher_speaks;         /* and has just said what it wants: otherwise it is stopped, or has died */
	bool higher_wants;          /* and wants to run, and is not aside, */
	unsigned int higher_wanting; /* so many, */
	uint64_t higher_since;      /* without a pause since then */
	bool has_rivals;            /* somebody of no higher priority wants to run, and is not aside */
	unsigned int equals_present; /* of the same priority: those that want to run and are not aside */
	unsigned int equals_wanting; /* … that want to run; aside or not */
	unsigned int equals_speaking; /* … that have just said what they want */
	uint64_t least_served_ns;   /* of those present; UINT64_MAX if there are none */
};

/* As where nobody else is. */
static const struct neighbours neighbours_none = {.least_served_ns = UINT64_MAX};

/* The same of one GPU, for a client of MPS whose launches are held back (turnstile.h): its kernels run beside those of other
 * clients, so only those clients concern it that share a TPC with it. Programs that are no clients have the whole GPU, in turn
 * with all clients: they share all. */
struct neighbours_on_gpu {
	struct pci_address pci;
	struct tpcset own;            /* TPCs that this process has there, as in its claim (board.h) */
	struct tpcset higher;         /* TPCs of all higher ones that want to run, and are not aside */
	struct neighbours neighbours; /* only those that share a TPC with this process; so `higher`, too */
};

/* The partition that its claims name from the next look on. Until it is told, or where it cannot be enforced, this process
 * shares TPCs with everybody. What it might have for a while outside of that, or does not use (stepping.h), is not meant. */
void neighbours_have(const struct segment_revision *revision);

/* From here on it takes part, as this; the first call joins, which takes a look through /proc. */
void neighbours_join(void);
void neighbours_leave(void);

/* Writes what this process wants, and reads what the others do. At `now`; `sight` is of this moment. Now and then this looks
 * for a board that comes first (state/board.h). */
struct neighbours neighbours_look(uint64_t now, const struct sight *sight, const struct neighbours_self *self);

/* What the last look saw on one GPU after the other: `number` is 0, 1 …; false if there are no more. */
bool neighbours_seen(unsigned int number, struct neighbours_on_gpu *seen);

/* In the child of a fork. */
void neighbours_after_fork(void);

#endif
