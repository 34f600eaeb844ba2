/*
 * The window of rules/lending.h, as it moves over the queues of a process: which launches are wide. A launch gets its TPCs twice: at
 * its call, as if it were the next one to start; and again while it waits behind others of its stream, as soon as all that is ahead in
 * the queue has been decided about and it fits into the window, or a claim comes back. Under the lock of the gate.
 */
#ifndef NVTASKSET_TIME_GATE_WINDOW_H
#define NVTASKSET_TIME_GATE_WINDOW_H

#include "gates.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether nothing of the process is in flight. */
bool window_is_idle(const struct gate *gate);

/* Which claims are idle. Where one came back, launches that wait leave its TPCs. */
void window_look(struct gate *gate, struct claims_idle *idle);

/* Launches that have ended are no more; and say how long they took. */
void window_sweep(struct gate *gate);
void window_learn(struct gate *gate);

/* The claims that allow another wide launch of this length; 0 for an unknown one. Those that are idle are in `idle`. */
uint32_t window_allows(const struct gate *gate, const struct claims_idle *idle, uint64_t ns);

/* How long a launch takes with the TPCs of these claims; 0: not known. */
uint64_t window_length(struct gate *gate, struct length *length, uint32_t open);

/* Whether a launch of this length takes longer than any window. */
bool window_refuses(const struct gate *gate, struct length *length, uint64_t ns);

/* The TPCs of such a launch. */
const struct gate_wide *window_tpcs(struct gate *gate, uint32_t open);

/* A launch is wide now. Returns its ticket (in_flight.h); 0: there is no room, and it is not. */
uint64_t window_add(struct gate *gate, uint32_t open, uint64_t ns, struct launch_end end);

/* What a launch that is noted has as its cookie (driver/pushbuffer/queue.h). */
enum window_kind {
	WINDOW_STAYS = 1, /* it is never wide, */
	WINDOW_WAITS = 2, /* and what is behind it is not until it has ended */
	WINDOW_WIDE = 4,  /* it was wide from the begin on */
};
uint64_t window_cookie(const struct gate *gate, const struct length *length, unsigned int kinds);

/* The claims will be others: launches that wait leave all of their TPCs. */
void window_begin_anew(struct gate *gate);

/* Decides about launches that wait. The launch with the cookie `newest` is being submitted: the GPU has not been told of it; 0: none.
 * Returns whether any waits that may still be changed. */
bool window_move(struct gate *gate, uint64_t newest);

#endif
