/*
 * Whether a borrower rests in its own part of the GPU, since its host is slower than the GPU. The launches of such a
 * program start at once, further TPCs gain nothing, and the program pays for each launch that may borrow. Pure: the
 * caller gives the observations, and the time in ns of a clock that never goes back.
 *
 *   program  A program gains from further TPCs only where its host waits for the GPU. With further TPCs the host of a
 *            program that gains may not wait any more. So a program in doubt, where the GPU often waits for the host,
 *            rests for some looks: the host is slow if the GPU waits more often than the host even now.
 *   phase    Each program has phases of some milliseconds. In a phase where the GPU waits for the host, the program
 *            launches in a row, nothing is in flight in many looks, and several launches are in flight now and then. In
 *            a phase where the host waits for the GPU, many launches are in flight, or always some, or only the few of
 *            one wait.
 *
 * Seen on an H200: of ViT-S, Llama and `generate`, the GPU waits in 20 to 73 % of the looks, the host in 0 to 1.4 %; of
 * a ResNet-50 that borrows in 10 and 8 %.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct host_looks {
	uint16_t all;     /* with work */
	uint16_t pauses;  /* nothing was in flight */
	uint16_t waits;   /* work was in flight, and the host had launched nothing since the look before */
	uint16_t several; /* more was in flight than a host has that waits for each of its launches */
};

enum host_speed { HOST_IS_NOT_SLOW, HOST_MAY_BE_SLOW, HOST_IS_SLOW };

/* All zero: nothing was seen yet. */
struct host_bound {
	bool is; /* the answer: the host may be slow or is slow, or in a phase */
	bool is_in_phase;
	enum host_speed speed;
	uint64_t doubted_from;     /* no doubt before */
	struct host_looks program; /* since the last answer about the program */
	uint8_t pauses, ahead;     /* a bit for each look, the newest first: nothing was in flight, and much was */
	uint32_t several;          /* likewise */
	uint64_t looked, launched; /* at the last look */
	uint64_t worked;           /* the last look with work */
	bool is_first, was_idle;   /* the next look is the second of two; nothing was in flight at the first */
};

#define HOST_BOUND_ANY_NS UINT64_C(1000000000) /* no look is needed before the caller looks */

/* `launched`: the number of launches up to now; `in_flight` of these have not ended. `rests`: the program has rested
 * since the last look. Looks in quick succession count as a single look. Returns the time to the next look:
 * HOST_BOUND_ANY_NS, or less where this look is the first of two. */
uint64_t host_bound_look(struct host_bound *host, uint64_t now, uint64_t launched, uint64_t in_flight, bool rests);
