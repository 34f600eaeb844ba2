/*
 * Whether a borrower rests in its own part of the GPU, since its host is slower than the GPU. The launches of such a
 * program start at once, further TPCs gain nothing, and the program pays for each launch that may borrow. Pure: the
 * caller gives the observations, and the time in ns of a clock that never goes back.
 *
 * A program has phases of some milliseconds of either kind. In a phase where the GPU waits for the host, the program
 * launches in a row, nothing is in flight in many looks, and several launches are in flight now and then. In a phase
 * where the host waits for the GPU, many launches are in flight, or always some, or only the few of one wait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing was seen yet. */
struct host_bound {
	bool is;                   /* the answer */
	uint8_t pauses, ahead;     /* a bit for each look, the newest first: nothing was in flight, and much was */
	uint32_t several;          /* likewise: more than a host that waits for its launches has */
	uint64_t looked, launched; /* at the last look */
	uint64_t worked;           /* the last look with work in flight, or launches in a row */
};

/* `launched`: the number of launches up to now; `in_flight` of these have not ended. Looks in quick succession count as
 * a single look. */
void host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight);
