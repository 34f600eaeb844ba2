/*
 * Whether a borrower rests in its own part of the GPU: its host is slower than the GPU. The launches of such a program
 * start at once, further TPCs gain little, and the program pays for each launch that may borrow. Pure: the caller gives
 * the observations, and the time in ns of a clock that never goes back.
 *
 * Further TPCs gain at most the time for which the host waits for the GPU. With further TPCs a host may not wait any
 * more. So a program in doubt, where the GPU often waits for the host, rests for some looks: the host is slow if the
 * host waits for less time than the launches would cost.
 *
 * Seen on H200s: of ViT-S, Llama and `generate`, the GPU waits in 5 to 73 % of the looks, and a launch that may borrow
 * costs 1 to 2.5 us of the host's time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What is seen at once. */
struct host_look {
	uint64_t launched;  /* the number of kernels up to now */
	uint64_t in_flight; /* kernels, on the GPU with most */
	bool is_blocked;    /* a thread that launches is in a call that waits for the GPU */
};

/* A program rests unless the host is not slow. */
enum host_speed { HOST_IS_NOT_SLOW, HOST_MAY_BE_SLOW, HOST_IS_SLOW };

/* All zero: nothing was seen yet. */
struct host_bound {
	enum host_speed speed;     /* the answer */
	uint64_t until;            /* no doubt, or doubt, until then; of a slow host: any */
	uint64_t looked, launched; /* at the last look */
	struct host_looks {
		uint16_t all;          /* with work */
		uint16_t pauses;       /* the GPU waited: nothing was in flight */
		uint16_t waits;        /* the host waited: in a call, or for room in the queue */
		uint64_t launches, ns; /* in the time before each look */
	} looks; /* since the last answer */
};

/* `rests`: the program rests. Looks in quick succession count as a single look. */
void host_bound_look(struct host_bound *host, uint64_t now, const struct host_look *look, bool rests);
