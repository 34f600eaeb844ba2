/*
 * Launches at the entry of their calls, in a wait: of a program without own TPCs, while programs with a higher claim
 * want TPCs; and of a program with a spent quota. The thread of the launch sleeps and looks again. Meanwhile, signals
 * are delivered.
 */
#pragma once

#include "gates.h"

/* A launch from the entry of the call until the launch goes. */
struct arrival {
	struct gate *gate;
	const struct call *call;
	struct launched_work work;
	struct length *length;
	uint64_t now, since;  /* the last look; the begin of the wait; 0: no wait */
	uint64_t waited_ns;   /* not for the quota */
	bool is_held;         /* the wait is not for the lock alone */
	unsigned int waits_for; /* the last reason: enum segment_event_kind */
	bool must_go;         /* the launch must not wait */
	bool is_captured;     /* the launch does not run now, and must not wait */
	bool is_together;     /* the kernel may wait for further launches */
	bool has_part;        /* the launch fits into TPCs without a higher claim */
	uint32_t open;        /* the claims whose TPCs the launch gets */
	struct tpcset more;   /* with these TPCs */
	uint64_t ns, ticket;  /* of in_flight.h */
};

/* Whether a launch of this call may have to wait. Without the lock. */
bool hold_may_be(const struct gate *gate, int call);

/* Returns when the launch may go, with `open` and `ticket`. */
void hold_until_it_goes(struct arrival *arrival);
