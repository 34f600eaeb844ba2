/*
 * Whether a borrower rests in its own part of the GPU, since its host is slower than the GPU. The launches of such a
 * program start at once, further TPCs gain nothing, and the program pays for each launch that may borrow. Pure: the
 * caller gives the observations, and the time in ns of a clock that never goes back.
 *
 * A program that launches in a row, and often has nothing in flight, may be host-bound. Then the program launches for a
 * second without lent TPCs, and rests if it launches as fast as before. After a while the question is asked again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All zero: nothing was seen yet. */
struct host_bound {
	bool is; /* the answer */
	uint64_t looked, launched; /* at the last look */
	/* Since the last answer, while the host launched or the GPU worked: the time, and of this the time up to looks
	 * with nothing in flight; and the launches. */
	uint64_t active_ns, paused_ns, launches;
	uint64_t rate;  /* launches in a second with lent TPCs; 0: not to be compared */
	uint64_t until; /* the answer stays until then */
};

/* `launched`: the number of launches up to now; `in_flight` of these have not ended. Looks in quick succession count as
 * a single look. */
void host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight);
