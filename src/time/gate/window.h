/*
 * Applies the window of time/rules/lending.h to the launches of this process. A launch is uploaded for the own part. A
 * launch that is the next to start may become wide before the GPU is told of the launch. A launch behind launches of
 * its stream may as soon as all launches ahead in the queue have been decided about and the launch fits into the
 * window; and becomes narrow again when a claim comes back. Under the lock of the gate.
 */
#pragma once

#include "driver/hook.h"
#include "gates.h"
#include "state/segment/events.h"

/* Whether nothing of the process is in flight. */
bool window_is_idle(const struct gate *gate);

/* Looks for idle claims. When a claim with wide launches came back, waiting launches leave the TPCs of the claim. */
void window_look(struct gate *gate, struct claims_idle *idle);

/* Removes ended launches from the window, and learns lengths. */
void window_sweep(struct gate *gate);

/* Whether to learn the length of a launch: now and then, and always while the length is unknown. */
bool window_is_due(struct gate *gate, const struct length *length, enum length_place place);

/* The length of a launch in the own part will be learnt. Returns a ticket, as window_add. */
uint64_t window_follow(struct gate *gate, const struct length *length, struct launch_end end);

/* The claims of `idle` that allow a further wide launch with the length `ns`; 0 for an unknown length, if all claims
 * together give no TPC (a further claim may take the same TPCs), or if window_add has no room for the launch. */
uint32_t window_allows(struct gate *gate, const struct claims_idle *idle, uint64_t ns);

/* The time of a launch with the TPCs of the claims `open`; 0: not known. */
uint64_t window_length(struct gate *gate, struct length *length, uint32_t open);

/* Whether a launch with the length `ns` takes longer than any window. */
bool window_refuses(const struct gate *gate, struct length *length, uint64_t ns);

const struct gate_tpcs *window_tpcs(struct gate *gate, uint32_t open);

/* Whether the claims `open` give more TPCs than the own part. */
bool window_gives_more(struct gate *gate, uint32_t open);

/* A launch is wide now. Returns a ticket (in_flight.h); 0: there is no room, and the launch is not wide. */
uint64_t window_add(struct gate *gate, uint32_t open, uint64_t ns, struct launch_end end);

/* Sweeps. A launch whose call begins is the next to start: wide, in the TPCs of the claims `open`, if there is room.
 * Returns a ticket, as window_add. */
uint64_t window_admit(struct gate *gate, struct length *length, uint32_t *open);

/* Likewise, for a launch that is being submitted: the mask is written as well. */
uint64_t window_widen(struct gate *gate, const struct launch *launch, const struct submission *submission,
                      struct length *length, struct launch_end end);

/* The cookie of a noted launch (driver/pushbuffer/queue.h). No cookie is 0. */
union window_cookie {
	uint64_t word;
	struct {
		uint64_t is_there : 1;
		uint64_t length : 13; /* the number */
		uint64_t gpu : 8;     /* likewise */
		uint64_t stays : 1;   /* the launch is never wide */
		uint64_t waits : 1;   /* no launch behind becomes wide before the launch has ended */
		uint64_t may_wait : 1; /* the launch itself may wait for any time */
		uint64_t edits : 39;  /* the number of edits at the launch */
	};
};

static inline struct length *window_length_of(uint64_t cookie)
{
	return lengths_at((union window_cookie){.word = cookie}.length);
}

/* Tells a watcher an event of the GPU and the claim. */
void window_tell(const struct gate *gate, unsigned int claim, struct segment_event event);

/* The claims are about to change: waiting launches leave the TPCs of all claims, and are in the window no more. False
 * while a second thread changes launches, of a different GPU: the claims must not change. */
bool window_begin_anew(struct gate *gate);

/* Sweeps, and decides about waiting launches. The launch with the end `newest` is being submitted, and the GPU has not
 * been told; a number of 0: no launch is. Returns whether a waiting launch may still be changed. */
bool window_move(struct gate *gate, struct launch_end newest);
