/*
 * Launches that wait at the entry of their calls: of a program without TPCs of its own, while those with a higher claim want theirs;
 * and of one whose quota is spent. A launch that waits sleeps, and looks again. Signals are delivered meanwhile.
 */
#ifndef NVTASKSET_TIME_GATE_HOLD_H
#define NVTASKSET_TIME_GATE_HOLD_H

#include "gates.h"
#include "driver/calls.h"

#include <stdbool.h>
#include <stdint.h>

/* A launch, from its call's entry until it goes. */
struct arrival {
	struct gate *gate;
	const struct call *call;
	struct launched_work work;
	struct length *length;
	uint64_t now, since;  /* its last look; it waits, since then; 0: it does not */
	uint64_t waited_ns;   /* not for the quota */
	bool is_held;         /* and not for the lock alone */
	bool must_go;         /* it must not wait, */
	bool is_captured;     /* as it will not run now */
	bool is_together;     /* it may wait for others */
	bool has_part;        /* there are TPCs that nobody has a higher claim to, in which it fits */
	uint32_t open;        /* it goes: into the TPCs of these claims, */
	uint64_t ns, ticket;  /* for so long; in_flight.h */
};

/* Whether a launch of this call may have to wait. Without the lock. */
bool hold_may_be(const struct gate *gate, int call);

/* Returns when the launch may go, with `open` and `ticket`. */
void hold_until_it_goes(struct arrival *arrival);

#endif
