/*
 * Whether a borrower rests in its own part of the GPU, since its host is slower than the GPU. The launches of such a
 * program start at once, further TPCs gain nothing, and the program pays for each launch that may borrow. Pure: the
 * caller gives the observations, and the time in ns of a clock that never goes back.
 *
 * A program gains from further TPCs only where its host waits for the GPU. With further TPCs the host of a program that
 * gains may not wait any more. So a program in doubt, where the GPU often waits for the host, rests for some looks: the
 * host is slow if even now the GPU waits more than four times as often as the host. Shorter waits than 0.05 ms are not
 * seen, as for each of many short launches; nor are waits of a thread while a second thread launches.
 *
 * Seen on an H200: of ViT-S, Llama and `generate`, the GPU waits in 20 to 73 % of the looks, the host in 0 to 1.4 %; of
 * a ResNet-50 that borrows in 10 and 8 %.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct host_looks {
	uint16_t all;    /* with work */
	uint16_t pauses; /* the GPU waited: nothing was in flight */
	uint16_t waits;  /* the host waited: work was in flight, and nothing had been launched since the look before */
};

/* A program rests unless the host is not slow. */
enum host_speed { HOST_IS_NOT_SLOW, HOST_MAY_BE_SLOW, HOST_IS_SLOW };

/* All zero: nothing was seen yet. */
struct host_bound {
	enum host_speed speed;     /* the answer */
	uint64_t until;            /* no doubt, or doubt, until then */
	struct host_looks looks;   /* since the last answer */
	uint64_t looked, launched; /* at the last look */
	bool is_first, was_idle;   /* the next look is the second of two; nothing was in flight at the first */
};

#define HOST_BOUND_ANY_NS UINT64_C(1000000000) /* no look is needed before the caller looks */

/* `launched`: the number of launches up to now. `is_busy`: some have not ended. `rests`: the program rests. Looks in
 * quick succession count as a single look. Returns the time to the next look: HOST_BOUND_ANY_NS, or less where this look
 * is the first of two. */
uint64_t host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, bool is_busy, bool rests);
