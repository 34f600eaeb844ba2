/*
 * Whether a program's host is slower than the program's own part of the GPU. The launches of such a program start at
 * once, further TPCs gain nothing, and the program would pay for each launch that may borrow. Pure: the caller gives
 * the observations, and the time in ns of a clock that never goes back.
 *
 * A program that launches in a row, and often has nothing in flight, is host-bound. With lent TPCs the GPU may be
 * faster than the host, and only the own part tells: if a host-bound program then hardly pauses on the GPU, the
 * question is left alone for a while. A program that waits for each kernel pauses as well, and does gain. So either
 * several launches must be in flight at times, or the pauses must be longer than the kernels.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing was seen yet. */
struct host_bound {
	bool is; /* the answer */
	uint64_t looked, launched; /* at the last look */
	uint64_t began;            /* of the looks below */
	/* Looks while the host launches or the GPU works; of these: nothing is in flight; more than one launch is; and
	 * the host has waited for the GPU since the look before. */
	unsigned int looks, pauses, several, waits;
	uint64_t again; /* until then the answer is no */
};

/* `launched`: the number of launches up to now; `in_flight` of these have not ended. Looks in quick succession count as
 * a single look. Between looks that are further apart than half a millisecond, most waits of a host stay unseen. */
void host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight);
