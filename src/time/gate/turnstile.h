/*
 * The entry of each call that launches, in a program that was given something in time and is a client of MPS: a launch is held
 * back there while the rules say so (holding.h), since nobody's channels may be touched under MPS.
 *
 * A graph is one launch. A launch into a stream that is being captured is never held. A held thread sleeps; it may have a lock
 * of the program's that others need, so each hold ends (holding.h says when). Signals are delivered meanwhile. A launch that is
 * made inside of another one's call, by a tool's callback, goes with that one.
 *
 * In programs without a rule, none of these calls is announced to us, and nothing here runs. With one, a launch takes a lock
 * of ours at its call's entry, for less than a microsecond, which it does not wait for longer than brief_lock.h says; nothing
 * of it is in the way of the kernel itself (launch/launch.h).
 *
 * Our thread (held.h) sees ends and others, and wakes those that wait.
 */
#ifndef NVTASKSET_TIME_GATE_TURNSTILE_H
#define NVTASKSET_TIME_GATE_TURNSTILE_H

#include "driver/calls.h"
#include "ends.h"
#include "holding.h"
#include "launch/space/stepping.h"
#include "state/segment/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* --- the program's threads ------------------------------------------------------------------------------------------- */

/* Whether such a call goes through the turnstile; one begins, which may wait; one has ended. */
bool turnstile_wants_call(int id);
void turnstile_call_begins(const struct call *call);
void turnstile_call_ended(const struct call *call);

/* Whether each launch needs a stamp and a record, as while somebody looks. In the launch path. */
bool turnstile_needs_stamps(void);

/* This thread's launch has this record in its ring of stamps. */
void turnstile_launched(const struct stamps *stamps, uint64_t record);

/* In the child of a fork. */
void turnstile_after_fork(void);

/* --- our thread ------------------------------------------------------------------------------------------------------ */

/* From here on launches are held where a rule says so; or no more: every hold ends. May be repeated. */
void turnstile_begin(void);
void turnstile_end(void);
bool turnstile_is_open(void);

/* Whether a launch is held, or about to be. */
bool turnstile_is_waited_for(void);

/* Whether since it was opened graphs were launched whose ends nobody sees (launch/graphs/counts.h): they count as ended
 * at once. */
bool turnstile_is_blind(void);

/* The rules that hold from now on; what was used is kept. */
struct turnstile_rules {
	enum holding_policy turn;
	uint64_t run_ns, period_ns; /* of the quota; run_ns >= period_ns: there is none */
	struct budget *budget;      /* the group's, if the quota is; or NULL */
	bool gives_way;             /* turnstile_give_way says to whom; until it does again, to whom it has said */
};
void turnstile_follow(const struct turnstile_rules *wanted, uint64_t now);

/* Whom launches on this GPU have to give way to now, by being held, unless they step aside. */
void turnstile_give_way(const struct peers_on_gpu *seen, const struct stepping *stepping, uint64_t now);

/* Sees which launches have ended, and wakes those that wait if anything has changed. Returns when to call this again at
 * the latest. */
uint64_t turnstile_look(uint64_t now);

/* On which GPUs a launch is held that wants to run; what was used, and held. */
bool turnstile_is_ready(struct pci_address pci);
struct turnstile_use {
	uint64_t used_ns; /* something of this process was on its GPUs, the sum of all of them */
	uint64_t held_ns; /* by all launches together */
	uint64_t held;    /* launches */
	uint64_t bounded; /* of them, those that went because a bound struck */
};
struct turnstile_use turnstile_use(void);

#endif
