/*
 * Whether a program's host is slower than the program's own part of the GPU. The launches of such a program start at
 * once, further TPCs gain nothing, and the program would pay for each launch that may borrow. Pure: the caller gives
 * the observations, and the time in ns of a clock that never goes back.
 *
 * A look tells what the host does: launch in a row, with few launches in flight, and then the GPU waits for the host;
 * or run far ahead of the GPU, or wait for the GPU. With most looks of the first kind, the program is host-bound. If a
 * program turns out to be bound by the GPU in its own part, the question is left alone for a while: the lent TPCs may
 * be what makes the GPU faster than the host.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing was seen yet. */
struct host_bound {
	bool is; /* the answer */
	uint64_t looked, launched; /* at the last look */
	uint64_t began;            /* of the looks below */
	unsigned int looks, waits; /* with work; of these, the GPU waits for the host */
	uint64_t again;            /* until then the answer is no */
};

/* `launched`: the number of launches up to now; `in_flight` of these have not ended. Looks in quick succession count as
 * a single look. */
void host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight);
