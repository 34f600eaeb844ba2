/*
 * The rules of a quota for launches that are held back before they begin (holding.h): whether there is room for a launch,
 * or when there will be. Pure: time is what the caller says, in nanoseconds of a clock that never goes back. Where a
 * program is put aside in the middle of a kernel, quota.h has the rules.
 *
 * This is TimeGraph's posterior enforcement (Kato et al., USENIX ATC 2011, 5.1 and 5.2). There is a budget e; C = RUN comes
 * in each period; what a launch has used is taken off when it has ended. A launch goes while e > 0: the last one of a period
 * may overrun, which is paid back. A period begins with e = min(C, e + C).
 *
 * What is beyond the paper, where only one launch is in flight and one waits:
 *
 *   - Several may be in flight, as many as e has room for: each speaks for as much as the longest one of late has used, and
 *     before any has ended, for all of C.
 *   - Those that wait go in the order in which they came: each leaves room for those before it, and only the first of them may
 *     overrun. So a long one does not starve.
 *   - Debt is paid back within the time for which a quota is promised to hold, ten seconds or 20 x/C periods; the rest
 *     lapses. So no launch ever waits for much longer than that, however many were let go without room (reserve_go).
 *
 * The members of a group share e (TimeGraph's Shared reserve, 5.2), and each knows only what it has in flight itself. So each of them may overrun by one launch.
 *
 * A launch that is measured to have used more than the time since it went is wrong: it counts as that time. One thread at
 * a time for each reserve: the caller sees to it.
 */
#ifndef NVTASKSET_TIME_GATE_RESERVE_H
#define NVTASKSET_TIME_GATE_RESERVE_H

#include "state/group/budget.h"

#include <stdbool.h>
#include <stdint.h>

/* Members are reserve.c's; only those of the first part are for others to read. */
struct reserve {
	int64_t left_ns;  /* e; negative: overdrawn */
	uint64_t used_ns; /* by this process, in all */

	struct budget *budget; /* the group's; NULL: what is left is this process's alone */
	int64_t run_ns, period_ns;
	uint64_t period_begin;
	int64_t in_flight_ns; /* what launches in flight speak for */
	int64_t queued_ns;    /* the same of all that have ever begun to wait, */
	int64_t served_ns;    /* and of those of them that wait no more */
	int64_t longest_ns;   /* what the longest launch of late has used; 0: none has ended */
};

/* A launch, for as long as it waits or is in flight; a graph's is one. Members are reserve.c's. */
struct reserve_launch {
	int64_t needs_ns;
	bool waits;
	int64_t place; /* in the queue: what had been queued before it */
	uint64_t went; /* when */
};

/* A new reserve, all zero before, or another quota for one that is there: then what is in flight or waits stays
 * so. Periods begin at multiples of their length: those of all programs together. 0 < run_ns <= period_ns. */
void reserve_begin(struct reserve *reserve, int64_t run_ns, int64_t period_ns, uint64_t now);

/* From here on, what is left is the group's, and periods begin for all of its members at the same time. NULL: no more. Before
 * reserve_begin. */
void reserve_share(struct reserve *reserve, struct budget *budget);

/* A launch comes. */
struct reserve_launch reserve_launch(const struct reserve *reserve);

/* Whether there is room for it now. */
bool reserve_has_room(struct reserve *reserve, const struct reserve_launch *launch, uint64_t now);

/* It begins to wait. Returns when, at the latest, a period begins in which there is room for it, if all others take as
 * long as they speak for. Before that there may be room whenever a launch has ended or a period begins. */
uint64_t reserve_wait(struct reserve *reserve, struct reserve_launch *launch, uint64_t now);

/* It goes, whether there is room or not, and waits no more. */
void reserve_go(struct reserve *reserve, struct reserve_launch *launch, uint64_t now);

/* Launches that waited for so much in all (needs_ns) have gone without anybody's knowing it, and use what they use: they wait
 * no more. */
void reserve_forget(struct reserve *reserve, int64_t needs_ns);

/* It has ended, and has used so much; 0 if it was not launched after all. */
void reserve_ended(struct reserve *reserve, const struct reserve_launch *launch, uint64_t used_ns, uint64_t now);

/* The begin of the next period. */
uint64_t reserve_next_period(const struct reserve *reserve, uint64_t now);

#endif
