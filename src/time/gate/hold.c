#include "hold.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/hook.h"
#include "launch/space/residency.h"
#include "state/segment/events.h"
#include "time/demand/wakeup.h"
#include "time/rules/quota.h"
#include "window.h"

#include <sys/prctl.h>

#define PAUSE_NS UINT64_C(20000) /* between two looks of a waiting launch, at least */
#define PAUSE_PART 64            /* in a long wait, the part of the wait */

bool hold_may_be(const struct gate *gate, int call)
{
	unsigned int known = atomic_load_explicit(&gate->known, memory_order_relaxed);

	return atomic_load_explicit(&gate_state.spent_at, memory_order_relaxed) != UINT64_MAX ||
	       known == GATE_HAS_NO_PART || (known == GATE_IS_NARROW && calls_may_launch_at_once(call));
}

/* --- the quota ---------------------------------------------------------------------------------------------------- */

/* Work in flight may wait for the launch, as a kernel of NCCL waits for further members of the group. */
static bool is_waited_for(const struct arrival *arrival)
{
	return arrival->is_together || atomic_load(&gate_state.group_is_together) ||
	       atomic_load(&gate_state.together) != atomic_load(&gate_state.together_ended);
}

/* A wait ends, since the work in flight may wait for the launch. The end comes after an episode, if some quota is left
 * or the process has work in flight on several GPUs. The end comes at the latest when the work in flight is charged
 * for longer than a debt lasts. */
static bool is_held_by_quota(const struct arrival *arrival, uint64_t in_flight)
{
	const struct in_flight *flying = &arrival->gate->in_flight;
	uint64_t spent_at = atomic_load_explicit(&gate_state.spent_at, memory_order_relaxed);
	uint64_t waited = arrival->since != 0 ? arrival->now - arrival->since : 0;
	uint64_t in_flight_ns = flying->unknown > 0 ? UINT64_MAX : flying->sum;
	bool is_over = waited >= LENDING_EPISODE_NS && (spent_at != 0 || atomic_load(&gate_state.is_spread));
	bool has_room = quota_has_room(spent_at, arrival->now, in_flight, in_flight_ns,
	                               lengths_ns(arrival->length, LENGTH_PART));

	return !has_room && !is_over && waited < atomic_load(&gate_state.longest_hold) && !is_waited_for(arrival);
}

/* --- without own TPCs --------------------------------------------------------------------------------------------- */

/* Whether the whole partition has room for a launch whose blocks must run at once. */
static bool may_fit(struct arrival *arrival)
{
	const struct claims *claims = &arrival->gate->claims;
	struct launch_request request;

	arrival->has_part = claims->has_part;
	if (!calls_read_request(arrival->call, 0, &request))
		return true;
	struct occupancy need = residency_need(arrival->gate->gpu->topology, &request);

	arrival->has_part = claims->has_part && occupancy_fits(&need, &claims->part);
	return occupancy_fits(&need, &claims->all_own);
}

/* Claims that are idle for longer than between launches in a row, and that give a TPC together. */
static uint32_t at_rest(struct gate *gate, const struct claims_idle *idle)
{
	uint32_t open = 0;

	for (unsigned int i = 0; i < gate->claims.count; i++)
		open |= (uint32_t)(idle->ns[i] >= LENDING_ROW_NS) << i;
	return window_gives_more(gate, open) ? open : 0;
}

/* Where nothing of the process is in flight, a launch of any length goes. */
static bool finds_room(struct arrival *arrival, uint64_t in_flight)
{
	struct gate *gate = arrival->gate;
	struct claims_idle idle;

	claims_look(&gate->claims, &idle);
	arrival->ns = window_length(gate, arrival->length, idle.open);
	arrival->open = window_allows(gate, &idle, arrival->ns);
	if (arrival->open == 0 && in_flight == 0)
		arrival->open = at_rest(gate, &idle);
	return arrival->open != 0;
}

/* After an episode, launches go in turn. Sometimes two must be there at once for both to end. */
static bool is_free(const struct arrival *arrival, uint64_t in_flight)
{
	bool is_next = in_flight == 0 || atomic_load(&gate_state.is_spread) ||
	               arrival->waited_ns >= SEGMENT_LEND_USUAL_US * UINT64_C(1000);

	return arrival->now < atomic_load(&gate_state.free_until) && is_next;
}

/* No launch waits for longer than an episode, even if the process launches meanwhile. */
static bool ends_episode(const struct arrival *arrival)
{
	bool is_over = arrival->waited_ns >= LENDING_EPISODE_NS;

	if (is_over) {
		atomic_fetch_add(&gate_state.bounded, 1);
		atomic_store(&gate_state.free_until, arrival->now + LENDING_FREE_NS);
	}
	return is_over;
}

/* --- both --------------------------------------------------------------------------------------------------------- */

/* No launch waits for room that will never be there. */
static bool goes(struct arrival *arrival, uint64_t in_flight, uint64_t passed_ns)
{
	const struct claims *claims = &arrival->gate->claims;
	bool is_held = is_held_by_quota(arrival, in_flight);
	bool is_kept = false;

	if (!is_held && claims->count > 0 && may_fit(arrival) && !arrival->has_part) {
		arrival->waited_ns += passed_ns;
		is_kept = !finds_room(arrival, in_flight) && !is_free(arrival, in_flight) && !ends_episode(arrival);
	}
	if (is_held || is_kept)
		arrival->waits_for = is_held ? SEGMENT_WAITED_FOR_QUOTA : SEGMENT_WAITED_FOR_PRIORITY;
	return arrival->must_go || (!is_held && !is_kept);
}

static void go(struct arrival *arrival, uint64_t in_flight)
{
	struct gate *gate = arrival->gate;
	bool has_quota = atomic_load(&gate_state.spent_at) != UINT64_MAX;

	if (arrival->is_together)
		atomic_fetch_add(&gate_state.together, 1);
	if (arrival->open != 0) {
		arrival->more = window_tpcs(gate, arrival->open)->tpcs;
		arrival->ticket = window_add(gate, arrival->open, arrival->ns, in_flight_called);
	} else if (has_quota) {
		arrival->ticket = window_follow(gate, arrival->length, in_flight_called);
	}
	if (has_quota && in_flight == 0) {
		atomic_store(&gate_state.began, arrival->now);
		wakeup_ring();
	}
}

/* Of two threads that look at the same time, the second sees the first. With nothing in flight on the only GPU, all
 * launches up to `together` have ended. */
static bool look(struct arrival *arrival)
{
	struct gate *gate = arrival->gate;
	uint64_t together = atomic_load(&gate_state.together), entering = atomic_load(&gate_state.entering);

	window_sweep(gate);
	uint64_t now = process_clock_ns(), flying = gate->in_flight.added - gate->in_flight.gone;
	/* Our thread may not have seen yet where a new context counts. */
	uint64_t in_flight = max_u64(claims_own_in_flight(&gate->claims) + entering, flying);
	bool is_open = atomic_load(&gate_state.is_open) && !arrival->is_captured;
	uint64_t passed_ns = arrival->since != 0 ? now - arrival->now : 0;

	arrival->now = now;
	if (in_flight == 0 && gate->claims.own_is_known && !atomic_load(&gate_state.has_gpus))
		atomic_store(&gate_state.together_ended, together);
	bool does = !is_open || goes(arrival, in_flight, passed_ns);

	arrival->is_held |= !does;
	/* Our thread reads `together` first: a launch in there is entering, or counted. */
	if (does && !arrival->is_captured) {
		atomic_fetch_add(&gate_state.entering, 1);
		go(arrival, in_flight);
	}
	return does;
}

/* While a different thread has the lock for longer than an episode, as in a debugger, the launch goes. */
static bool try(struct arrival *arrival)
{
	bool does = false;

	if (gate_lock_soon(arrival->gate, 0)) {
		does = look(arrival);
		gate_unlock(arrival->gate);
	} else if (arrival->must_go ||
	           (arrival->since != 0 && process_clock_ns() - arrival->since > LENDING_EPISODE_NS)) {
		atomic_fetch_add(&gate_state.entering, !arrival->is_captured);
		does = true;
	}
	return does;
}

/* The kernel's slack does not lengthen the pauses. */
static void wait(struct arrival *arrival)
{
	int slack = prctl(PR_GET_TIMERSLACK);

	arrival->now = arrival->since = process_clock_ns();
	prctl(PR_SET_TIMERSLACK, 1UL);
	atomic_fetch_add(&gate_state.waiting, 1);
	wakeup_ring();
	do
		clock_pause_us((long)(max_u64(PAUSE_NS, (process_clock_ns() - arrival->since) / PAUSE_PART) / 1000));
	while (!try(arrival));
	atomic_fetch_sub(&gate_state.waiting, 1);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	if (arrival->is_held) {
		const struct segment_event event = {
			arrival->waits_for, .begin_ns = arrival->since, .end_ns = process_clock_ns()};

		atomic_fetch_add(&gate_state.held, 1);
		atomic_fetch_add(&gate_state.held_ns, event.end_ns - event.begin_ns);
		segment_note(time_news.segment, &event);
	}
}

/* No call says in which graph the node is: from here on, each graph may have the node. */
static void note_together(struct arrival *arrival)
{
	bool is_graph = arrival->work.is_graph && atomic_load(&gate_state.graphs_are_together);

	arrival->is_together = arrival->work.waits_for_others || is_graph;
	arrival->is_captured = arrival->work.waits_for_others && driver_captures(arrival->work.stream);
	if (arrival->is_captured)
		atomic_store(&gate_state.graphs_are_together, true);
}

/* A captured launch becomes a node of a graph. */
void hold_until_it_goes(struct arrival *arrival)
{
	note_together(arrival);
	if (!try(arrival)) {
		arrival->is_captured = driver_captures(arrival->work.stream);
		arrival->must_go = arrival->is_captured || hook_is_in_other();
		if (arrival->must_go)
			try(arrival);
		else
			wait(arrival);
	}
}
