/*
 * Whether a launch is held back at the entry of its call, and for how long. Pure: time is what the caller says, in
 * nanoseconds of a clock that never goes back; what is in flight and what others want, too.
 *
 * A launch is held
 *
 *   - for priority, while a program of a higher priority wants to run: none of ours begins meanwhile;
 *   - for the window, while somebody of a higher priority is there and as many launches of ours are in flight as there may be:
 *     the higher one would have to wait for these;
 *   - for the quota, while there is no room in its reserve (reserve.h).
 *
 * Priority and window are TimeGraph's two policies (Kato et al., USENIX ATC 2011, 4.1):
 *
 *   HOLDING_PRT   Predictable response times: one launch in flight, so that a higher one waits for one kernel at most. The
 *                 paper says so always. Here, while a higher one wants to run, or did a while ago (HOLDING_RECENT_NS: it
 *                 may come back). Otherwise HOLDING_WINDOW.
 *   HOLDING_HT    High throughput: successors of one's own launches may go, too, as long as no higher one wants to run:
 *                 HOLDING_WINDOW.
 *
 * Two things differ from the paper: whoever has the highest priority never waits for a lower one's kernel to end before
 * it launches, since the hardware runs both side by side where there is room; and equals do not wait for each other.
 *
 * A held thread may have a lock that others need, and what is in flight may wait for the held launch. So each hold ends:
 * one for priority and the window after HOLDING_BOUND_NS; one for the quota when the period begins that was computed as
 * the hold began; and any of them when it has lasted HOLDING_BOUND_NS and the process has work in flight on another GPU.
 * A launch that goes for that reason is counted, and what it uses is taken off the quota as ever.
 *
 * A launch that is held for several reasons is held for all of them at the same time. A graph is one launch. One thread
 * at a time for each struct holding: the caller sees to it.
 */
#ifndef NVTASKSET_TIME_GATE_HOLDING_H
#define NVTASKSET_TIME_GATE_HOLDING_H

#include "reserve.h"
#include "time/demand/peers.h"

#include <stdbool.h>
#include <stdint.h>

#define HOLDING_WINDOW 16
#define HOLDING_BOUND_NS UINT64_C(100000000)
#define HOLDING_RECENT_NS UINT64_C(100000000)

enum holding_policy {
	HOLDING_PRT,
	HOLDING_HT
};

enum holding_reason {
	HOLDING_FOR_PRIORITY,
	HOLDING_FOR_WINDOW,
	HOLDING_FOR_QUOTA,
	HOLDING_REASONS
};

/* What is known when somebody asks. */
struct holding_view {
	unsigned int in_flight;       /* launches of this process on this GPU that have gone and not ended */
	struct rivals rivals; /* those on this GPU that it has to give way to: not where the launch shares no TPC */
	bool is_busy_elsewhere;       /* this process has work in flight on another GPU */
	bool is_over;                 /* every hold ends: a rule was taken away, MPS's server has ended, the program ends */
};

/* What a process may do on one GPU, and what came of it. The first part is the caller's to set. */
struct holding {
	enum holding_policy policy;
	struct reserve *reserve; /* NULL: nothing is counted as used */
	bool is_unlimited;       /* the reserve holds nobody: there is no quota just now */

	uint64_t held;    /* launches that were held and have gone, */
	uint64_t held_ns; /* for so long in all */
	uint64_t struck[HOLDING_REASONS]; /* launches that went at the bound though there was this reason to hold them, */
	uint64_t struck_elsewhere;        /* or because of another GPU */

	bool higher_wants;      /* as it was seen last */
	uint64_t higher_wanted; /* until then; 0: never */
};

/* A launch; a graph's is one. Its reserve_launch is the caller's to set, where there is a reserve. */
struct holding_launch {
	struct reserve_launch reserved;
	bool is_held;
	bool is_ready;  /* it is held, but not for the quota: so the program wants to run, which lower ones must know */
	uint64_t since; /* if it is held */
	uint64_t turn_until;  /* the end of its hold for priority and the window; 0: there was none */
	uint64_t quota_until; /* the same for the quota */
};

/* Whether the launch goes now. If not, it is held: ask again when anything in the view has changed, and at `wake` at the
 * latest. If so, it is in flight for its reserve from now on. */
bool holding_ask(struct holding *holding, struct holding_launch *launch, const struct holding_view *view, uint64_t now,
                 uint64_t *wake);

/* What others want is seen now; for who looks more often than there are launches. */
void holding_see(struct holding *holding, const struct holding_view *view, uint64_t now);

#endif
