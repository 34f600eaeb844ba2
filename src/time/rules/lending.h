/*
 * The law of the gate (gate/gate.h): when a process's launches may use TPCs to which somebody else has a higher claim, since
 * these are its own and were lent, or since its priority is higher. Pure: what the caller sees, and when, in ns.
 *
 *   idle     What the owner has in flight is exact, and for a while after it its TPCs are its own as well: so a program that
 *            pauses between steps is not disturbed in each pause; where the other one has no part of its own, for a short
 *            while only. Before that, they are open to what takes a small part of how long it has been idle. A launch closes
 *            its TPCs at once.
 *   window   What is in flight there when the owner comes back ends in time: one launch of at most LIMIT, or several that
 *            together take at most a batch. All that the process has in flight counts, since it may be before the launch in
 *            its stream. What is not known to take so long, or may not start at once, runs in the own part; who has none has
 *            one launch there, whatever it takes.
 *   part     While an owner is at work, launches go inside the own part: at once, as long as all that is before it in its stream
 *            takes at most LIMIT, so that it would not be there for long when the TPCs open. One that is new waits to run alone,
 *            to be measured. In the while after the owner, what goes there has ended when the TPCs open: only where nothing is
 *            in flight, one launch goes all the same.
 *   episode  Nobody waits for ever: once one has waited for LENDING_EPISODE_NS, all go until nothing is in flight, for
 *            LENDING_FREE_NS at most.
 */
#ifndef NVTASKSET_TIME_RULES_LENDING_H
#define NVTASKSET_TIME_RULES_LENDING_H

#include "base/extremes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LENDING_BATCH_NS UINT64_C(100000) /* beside a higher priority; and beside one that lends, this part of LIMIT: */
#define LENDING_BATCH_PART 2
#define LENDING_EARLY_PART 4 /* of how long the owner has been idle: what opens before, if it has been for at least */
#define LENDING_EARLY_NS UINT64_C(200000)
#define LENDING_UNSEEN 16
#define LENDING_ROW_NS UINT64_C(50000) /* launches in a row of a higher priority are no further apart */
#define LENDING_EPISODE_NS UINT64_C(100000000)
#define LENDING_FREE_NS UINT64_C(10000000)

/* --- idle ------------------------------------------------------------------------------------------------------------- */

#define LENDING_FOR_LONG UINT64_MAX

/* Another process with a higher claim, as this one has seen it; its threads write it without a lock. All zero: busy. */
struct lending_owner {
	_Atomic uint64_t launches; /* a number that changes with each of its launches: when it was idle */
	_Atomic uint64_t since;    /* it was idle; LENDING_FOR_LONG: for long enough; 0: it is not */
};

/* Whether its TPCs are open, if nothing has changed. */
static inline bool lending_stays_open(const struct lending_owner *owner, uint64_t launches)
{
	return atomic_load_explicit(&owner->since, memory_order_relaxed) == LENDING_FOR_LONG &&
	       atomic_load_explicit(&owner->launches, memory_order_relaxed) == launches;
}

/* Otherwise: in how many ns they will be, if nothing changes; 0: now; LENDING_NEVER: it wants. `launches` was read before it was
 * seen whether it does. It must have been idle for `hold_ns`. */
#define LENDING_NEVER UINT64_MAX
uint64_t lending_opens_in(struct lending_owner *owner, uint64_t launches, bool wants, uint64_t now, uint64_t hold_ns);

/* The same for a launch of this length; 0: not known. It may open before the others. */
uint64_t lending_opens_early(uint64_t opens_in_ns, uint64_t hold_ns, uint64_t length_ns);

/* --- window ----------------------------------------------------------------------------------------------------------- */

/* Lengths: 0 where they are not known; LENDING_NEVER for what must not be where it may have to end in time. */
struct lending_view {
	uint64_t length_ns;    /* of the launch, in all that is open, */
	uint64_t part_ns;      /* and in its own part */
	bool may_wait;         /* it may not start at once: behind an event, a value, the host */
	bool is_new;           /* it should run alone, to be measured */
	bool is_patient;       /* it has not waited for too long */
	bool has_part;         /* the process has TPCs that nobody has a higher claim to; */
	bool has_more;         /* and there are open ones beside them; */
	bool may_open;         /* or may be later; */
	uint64_t opens_in_ns;  /* or others will be in so long; LENDING_NEVER: not soon */
	bool takes_any;        /* there is no window */
	uint64_t in_flight;    /* kernels of this process, */
	uint64_t in_flight_ns; /* which take so long together; LENDING_NEVER: not known; */
	bool is_behind;        /* all of them are before it in its stream */
	uint64_t limit_ns, batch_ns;
};

enum lending_verdict {
	LENDING_PART,  /* it goes, in its own part */
	LENDING_MORE,  /* in all that is open */
	LENDING_ROOM   /* it waits until less of its own is in flight, or anything is open */
};

/* How many launches of this length end within so much time; 0 where it is not known. */
static inline uint64_t lending_fit(uint64_t length_ns, uint64_t ns)
{
	return length_ns == 0 || length_ns == LENDING_NEVER ? 0 : ns / length_ns;
}

enum lending_verdict lending_ask(const struct lending_view *view);

/* How many launches go into the own part before somebody looks again whether there is more: so few that it matters little. */
static inline uint64_t lending_unseen(const struct lending_view *view)
{
	return min_u64(LENDING_UNSEEN, lending_fit(view->part_ns, view->batch_ns));
}

#endif
