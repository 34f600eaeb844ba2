#include "gates.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/graph_instances.h"
#include "driver/hook.h"
#include "driver/streams.h"
#include "gate.h"
#include "launch/account/account.h"
#include "launch/space/epoch.h"
#include "launch/space/residency.h"
#include "state/kernels/counts_read.h"
#include "time/demand/wakeup.h"
#include "time/rules/quota.h"

#include <string.h>
#include <sys/prctl.h>

#define PAUSE_NS UINT64_C(20000) /* between two looks of a launch that waits; or this part of how long it has waited */
#define PAUSE_PART 64
#define WATCH_NS UINT64_C(100000) /* after its call, at most, a launch that is measured is watched */
#define GRAPH_COSTS 20 /* times what a change costs: then a graph changes its TPCs for more again */

/* A launch, from its call's entry until it goes. */
struct arrival {
	struct gate *gate;
	const struct call *call;
	struct launched_work work;
	struct length *length;
	uintptr_t stream;        /* a number */
	struct passage passage;
	uint64_t since, before;  /* it waits, with so many in flight then; 0: it does not */
	uint64_t waited_ns;      /* not for the quota */
	bool must_go;            /* it must not wait, */
	bool is_captured;        /* as it will not run now */
	bool is_together;        /* it may wait for others */
	uint64_t in_part;        /* where it would go there */
	struct lending_view view; /* at the last look; */
	struct others_now others;
	struct flight_seen seen;  /* of its own; */
	uint64_t now, passed_ns;  /* since the one before */
	uint32_t how;            /* it goes; */
	bool is_by_law;          /* and nothing else lets it; */
	uint64_t ns;             /* so long there; 0: not known */
};

/* --- looking ---------------------------------------------------------------------------------------------------------- */

/* For how long a launch waits for room: longer than LIMIT where what is in flight ends soon after. */
static uint64_t patience(const struct flight *flight, uint64_t limit_ns)
{
	uint64_t longest = flight_longest(flight);

	return limit_ns + (longest <= LENDING_EPISODE_NS / 2 ? longest : 0);
}

static void see(struct arrival *arrival, const struct others_on_gpu *others)
{
	struct flight *flight = &arrival->gate->flight;
	uint64_t in_flight = arrival->seen.in_flight + arrival->seen.entering, now = process_clock_ns();

	arrival->passed_ns = arrival->since != 0 ? now - arrival->now : 0;
	arrival->now = now;
	arrival->others = (struct others_now){.open = 0};
	arrival->how = 0;
	arrival->is_by_law = others->count == 0;
	arrival->view = (struct lending_view){
		.has_part = others->has_part,
		.may_open = others->may_open,
		.takes_any = atomic_load_explicit(&gate_state.takes_any, memory_order_relaxed),
		.in_flight = in_flight,
		.in_flight_ns = flight_look(&arrival->seen),
		.is_behind = flight_is_in(flight, &arrival->seen, arrival->stream),
		.is_patient = arrival->waited_ns < patience(flight, others->limit_ns),
		.limit_ns = others->limit_ns,
		.batch_ns = others->batch_ns,
	};
	if (atomic_load_explicit(&streams_waiting, memory_order_relaxed) != 0)
		arrival->view.may_wait = streams_may_wait(arrival->work.stream, arrival->call->context, in_flight == 0);
}

/* --- deciding --------------------------------------------------------------------------------------------------------- */

/* What is in flight may wait for this launch, as a kernel of NCCL does for other members of the group. */
static bool is_waited_for(const struct arrival *arrival)
{
	return arrival->is_together || atomic_load(&gate_state.group_is_together) ||
	       atomic_load(&gate_state.together) != atomic_load(&gate_state.together_ended);
}

/* Nobody waits for ever for what may itself wait for the launch: so where something is left, or the process has work in flight on
 * several GPUs; and in any case, what is in flight is charged for longer than a debt lasts. */
static bool is_held_by_quota(struct arrival *arrival)
{
	uint64_t spent_at = atomic_load_explicit(&gate_state.spent_at, memory_order_relaxed), ns = lengths_longest(arrival->length, LENGTH_PART);
	uint64_t waited = arrival->since != 0 ? arrival->now - arrival->since : 0;
	bool is_over = waited >= LENDING_EPISODE_NS && (spent_at != 0 || atomic_load(&gate_state.is_spread));
	bool has_room = quota_has_room(spent_at, arrival->now, arrival->view.in_flight, arrival->view.in_flight_ns, ns);

	return !has_room && !is_over && waited < atomic_load(&gate_state.longest_hold) && !is_waited_for(arrival);
}

/* Whether its partition has room for a launch whose blocks must run at once, be it not in its own part. */
static bool may_fit(struct arrival *arrival, const struct others_on_gpu *others)
{
	struct launch_request request;
	const struct gpu *gpu = calls_read_request(arrival->call, &request) ? contexts_gpu(arrival->call->context) : NULL;

	if (!gpu || !gpu->topology)
		return true;
	struct occupancy need = residency_need(gpu->topology, &request);

	arrival->view.has_part = others->has_part && occupancy_fits(&need, &others->part);
	return occupancy_fits(&need, &others->all_own);
}

/* Whether it goes by the law. */
static bool ask(struct arrival *arrival, struct others_on_gpu *others)
{
	struct lending_view *view = &arrival->view;
	const struct others_now now = arrival->others = others_look(others, lengths_longest(arrival->length, LENGTH_MORE));
	uint32_t open = now.open;
	struct tpcset all = others_tpcs(others, open), own = tpcset_and(&all, &others->all_own);
	unsigned int part = tpcset_count(&others->part), more = tpcset_count(&all);
	bool is_own = arrival->work.waits_for_others;

	view->opens_in_ns = now.opens_in_ns;
	view->batch_ns = min_u64(view->batch_ns, now.idle_ns / LENDING_EARLY_PART);
	view->has_more = tpcset_count(is_own ? &own : &all) > part;
	view->length_ns = lengths_of(arrival->length, part, more, others->limit_ns, &view->is_new);
	view->length_ns = others->own_is_unknown ? LENDING_NEVER : view->length_ns;
	view->part_ns = lengths_longest(arrival->length, LENGTH_PART);
	/* What is known in the part is tried in more only where that is open. */
	view->is_new = view->is_new && (view->has_more || view->part_ns == 0);
	view->is_patient = view->is_patient || (view->is_new && arrival->waited_ns < LENDING_EPISODE_NS);
	enum lending_verdict verdict = lending_ask(view);

	if (verdict == LENDING_MORE)
		arrival->how = WHERE_MORE | open | (is_own ? WHERE_OWN : 0);
	if (verdict == LENDING_MORE || (view->has_more && view->length_ns > view->limit_ns))
		atomic_store_explicit(verdict == LENDING_MORE ? &gate_state.has_more : &gate_state.is_too_long, true, memory_order_relaxed);
	arrival->is_by_law = verdict == LENDING_MORE || verdict == LENDING_PART;
	return arrival->is_by_law;
}

/* After an episode, one follows the other, unless it may have to be there for the other to end. */
static bool is_free(struct arrival *arrival, const struct others_on_gpu *others)
{
	bool is_next = arrival->view.in_flight == 0 || atomic_load(&gate_state.is_spread);

	return arrival->now < atomic_load(&gate_state.free_until) && (is_next || arrival->waited_ns >= others->limit_ns);
}

/* Nobody waits for longer than an episode, whatever others of the process launch meanwhile. */
static bool ends_episode(struct arrival *arrival)
{
	bool is_over = arrival->waited_ns >= LENDING_EPISODE_NS;

	if (is_over) {
		atomic_fetch_add(&gate_state.bounded, 1);
		atomic_store(&gate_state.free_until, arrival->now + LENDING_FREE_NS);
	}
	return is_over;
}

/* Nobody waits for room that will never be there. Who goes although it was to wait stays in its own part where that holds it. */
static bool decide(struct arrival *arrival, struct others_on_gpu *others)
{
	bool goes = true;

	see(arrival, others);
	if (!atomic_load(&gate_state.is_open) || arrival->is_captured)
		return true;
	bool is_held = is_held_by_quota(arrival);

	arrival->waited_ns += is_held ? 0 : arrival->passed_ns;
	if (is_held)
		goes = false;
	else if (others->count > 0)
		goes = !may_fit(arrival, others) || is_free(arrival, others) || ask(arrival, others) || ends_episode(arrival);
	goes = goes || arrival->must_go;
	if (goes && arrival->how == 0 && arrival->view.has_part && others->is_narrow)
		arrival->how = WHERE_PART;
	return goes;
}

/* --- going ------------------------------------------------------------------------------------------------------------ */

/* From here on, nothing goes as before: so all that other threads launch is seen. What they launched before is seen here. */
static bool is_alone(const struct gate *gate, const struct others_on_gpu *others, uint64_t ended)
{
	return atomic_load(&gate->entering) == 1 && others_own_in_flight(others) == 0 && others_own_ended(others) == ended;
}

/* It ran alone, to be measured; or did not, and waits for that again only where half of what was in flight has ended meanwhile. */
static void measure_it(struct arrival *arrival, const struct others_on_gpu *others, const struct measured *launch)
{
	struct measure *measure = &arrival->gate->measure;
	uint64_t in_flight = arrival->view.in_flight, ended = others_own_ended(others);
	bool has_quota = atomic_load(&gate_state.spent_at) != UINT64_MAX;

	measure_disturb(measure, launch->stream);
	if (in_flight > 0) {
		if (launch->is_new && in_flight >= arrival->before / 2)
			lengths_miss();
	} else if ((others->count > 0 || has_quota) && measure_begin(measure, launch, ended)) {
		epoch_raise_world();
		arrival->passage.is_measured = is_alone(arrival->gate, others, ended);
		if (!arrival->passage.is_measured)
			measure_drop(measure);
	}
	if (in_flight == 0 && (has_quota || arrival->passage.is_measured)) {
		atomic_store(&gate_state.began, arrival->now);
		wakeup_ring();
	}
}

static void go(struct arrival *arrival, const struct others_on_gpu *others)
{
	struct gate *gate = arrival->gate;
	enum length_place place = arrival->how & WHERE_MORE ? LENGTH_MORE : LENGTH_PART;
	uint64_t open = (uint64_t)others->generation << 32 | where_open(arrival->how);
	const struct measured launch = {arrival->length, place, arrival->work.is_graph ? 0 : arrival->stream, arrival->view.is_new, open};

	arrival->passage.is_entering = true;
	if (arrival->is_together)
		atomic_fetch_add(&gate_state.together, 1);
	arrival->ns = lengths_longest(arrival->length, place);
	/* Launches that go as others did before must not be longer than is known: then they are decided about anew. */
	if (flight_add(&gate->flight, &arrival->seen, arrival->ns != 0 ? arrival->ns : FLIGHT_NEVER, arrival->stream))
		epoch_raise_world();
	streams_launch(arrival->work.stream, arrival->call->context);
	measure_it(arrival, others, &launch);
	atomic_store_explicit(&gate->last_how, arrival->how, memory_order_relaxed);
}

/* --- remembering ------------------------------------------------------------------------------------------------------ */

/* As many as end in time, while nobody else launches anything. */
static bool remember_window(const struct arrival *arrival, const struct others_on_gpu *others, struct gate_last *last)
{
	uint64_t longest = flight_longest(&arrival->gate->flight), before = arrival->view.in_flight;
	uint64_t most = arrival->view.takes_any ? UINT32_MAX : lending_fit(longest, others->batch_ns);

	if (others->own_count != 1 || arrival->others.open != (UINT32_C(1) << others->count) - 1)
		return false;
	last->launched = account_own.launched;
	last->ended = counts_place_ended_word(others->own[0]);
	last->most = (int64_t)(atomic_load(last->launched) - atomic_load(last->ended) + most - 1 - before);
	return most > before + 1 && !arrival->view.is_new && atomic_load(&arrival->gate->entering) == 1 &&
	       others_words(others, last->launched, &last->words);
}

static void remember(const struct arrival *arrival, const struct others_on_gpu *others, uint64_t world, struct gate_last *last)
{
	static const _Atomic uint64_t zero;
	const struct others_now *now = &arrival->others;
	bool is_settled = others->count == 0 || (account_own.slot && now->opens_in_ns == LENDING_NEVER && now->idle_ns == LENDING_NEVER);
	bool is_usual = arrival->is_by_law && arrival->since == 0 && !arrival->work.is_graph && !arrival->work.waits_for_others &&
	                is_settled;
	bool is_quiet = atomic_load(&gate_state.is_open) && atomic_load(&gate_state.spent_at) == UINT64_MAX &&
	                atomic_load(&streams_waiting) == 0 && !atomic_load(&arrival->gate->measure.is_on);

	last->kernel.function = (CUfunction)arrival->work.what;
	memcpy(last->kernel.grid, arrival->work.grid, sizeof last->kernel.grid);
	counts_words_clear(&last->words);
	last->launched = last->ended = &zero;
	last->most = INT64_MAX;
	if (is_usual && arrival->how & WHERE_MORE) {
		is_usual = remember_window(arrival, others, last);
	} else if (is_usual && others->count > 0) {
		uint64_t launches = lending_unseen(&arrival->view);

		last->launched = &account_own.slot->launches[1];
		last->most = (int64_t)(atomic_load(last->launched) + launches);
		is_usual = launches > 0;
	}
	last->words.sum += world;
	last->flight = &arrival->gate->flight;
	last->more = others->count > 0 && !arrival->view.takes_any ? flight_more(arrival->ns) : 0;
	last->context = is_usual && is_quiet ? arrival->call->context : NULL;
	/* How long those take that nobody adds is not known until nothing is in flight. */
	if (last->context && last->more == 0)
		flight_add(last->flight, &arrival->seen, FLIGHT_NEVER, arrival->stream);
}

/* --- passing ---------------------------------------------------------------------------------------------------------- */

/* With nothing in flight on its only GPU, so many launches that may wait for others have ended. */
static void see_end(const struct arrival *arrival, const struct others_on_gpu *others, uint64_t together)
{
	bool is_idle = arrival->seen.in_flight + arrival->seen.entering == 0 && !others->own_is_unknown;

	if (is_idle && !atomic_load(&gate_state.has_gpus))
		atomic_store(&gate_state.together_ended, together);
}

/* One look. Returns whether it goes. Of two that look at the same time, one sees the other. */
static bool try(struct arrival *arrival, struct gate_last *last)
{
	struct gate *gate = arrival->gate;
	uint64_t world = epoch_of_world(), together = atomic_load(&gate_state.together);
	struct others_on_gpu *others = gate_enter(gate);
	uint64_t generation = (uint64_t)others->generation << 32;

	arrival->seen.word = atomic_load(&gate->flight.word);
	arrival->seen.entering = atomic_fetch_add(&gate->entering, 1);
	gate_measure(gate, others);
	arrival->seen.in_flight = others_own_in_flight(others);
	arrival->seen.ended = others_own_ended(others);
	see_end(arrival, others, together);
	bool goes = decide(arrival, others);

	if (goes && !arrival->is_captured)
		go(arrival, others);
	else
		atomic_fetch_sub(&gate->entering, 1);
	if (goes)
		remember(arrival, others, world, last);
	arrival->passage.where = arrival->how != 0 ? generation | arrival->how : 0;
	arrival->in_part = others->is_narrow ? generation | WHERE_PART : 0;
	gate_leave(gate, others);
	return goes;
}

/* It sleeps as shortly as it asks for. */
static void wait(struct arrival *arrival, struct gate_last *last)
{
	int slack = prctl(PR_GET_TIMERSLACK);

	arrival->since = process_clock_ns();
	arrival->before = arrival->view.in_flight;
	prctl(PR_SET_TIMERSLACK, 1UL);
	atomic_fetch_add(&gate_state.waiting, 1);
	wakeup_ring();
	do
		clock_pause_us((long)(max_u64(PAUSE_NS, (process_clock_ns() - arrival->since) / PAUSE_PART) / 1000));
	while (!try(arrival, last));
	atomic_fetch_sub(&gate_state.waiting, 1);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	atomic_fetch_add(&gate_state.held, 1);
	atomic_fetch_add(&gate_state.held_ns, process_clock_ns() - arrival->since);
}

/* Where a graph's nodes are when this call launches it. Not for more TPCs again and again: then it stays in its own part. */
static void settle_graph(struct arrival *arrival)
{
	CUgraphExec exec = (CUgraphExec)arrival->work.what;
	struct passage *passage = &arrival->passage;
	bool may_move = !(passage->where & WHERE_MORE) || !arrival->view.has_part ||
	                process_clock_ns() >= atomic_load(&arrival->length->until);
	enum graph_move move = graph_instances_move(exec, passage->where, may_move);

	if (move == GRAPH_STAYS) {
		passage->where = arrival->in_part;
		move = graph_instances_move(exec, passage->where, true);
	}
	if (move == GRAPH_MOVES) {
		atomic_store(&arrival->length->until, process_clock_ns());
		passage->moved = arrival->length;
	}
}

/* Nobody says in which graph such a node is: from here on, each graph may have it. */
static void note_together(struct arrival *arrival)
{
	bool is_graph = arrival->work.is_graph && atomic_load(&gate_state.graphs_are_together);

	arrival->is_together = arrival->work.waits_for_others || is_graph;
	arrival->is_captured = arrival->work.waits_for_others && driver_captures(arrival->work.stream);
	if (arrival->is_captured)
		atomic_store(&gate_state.graphs_are_together, true);
}

/* A captured launch becomes a node of a graph. */
struct passage pass(struct gate *gate, const struct call *call, struct gate_last *last)
{
	struct arrival arrival = {.gate = gate, .call = call, .work = calls_read_work(call)};

	if (!arrival.work.what)
		return arrival.passage;
	note_together(&arrival);
	arrival.length = lengths_find(&arrival.work);
	arrival.stream = streams_number(arrival.work.stream, call->context);
	if (!try(&arrival, last)) {
		arrival.is_captured = driver_captures(arrival.work.stream);
		arrival.must_go = arrival.is_captured || hook_is_in_other();
		if (arrival.must_go)
			try(&arrival, last);
		else
			wait(&arrival, last);
	}
	if (arrival.work.is_graph)
		settle_graph(&arrival);
	return arrival.passage;
}

/* Our thread would see the end of a short one too late. */
static void watch(struct gate *gate)
{
	struct others_on_gpu *others = gate_enter(gate);
	uint64_t end = process_clock_ns() + WATCH_NS;

	while (atomic_load(&gate->measure.is_on) && process_clock_ns() < end)
		gate_measure(gate, others);
	gate_leave(gate, others);
}

void passed(struct gate *gate, const struct call *call, const struct passage *passage)
{
	bool has_gone = passage->is_measured && *call->result == CUDA_SUCCESS && !driver_captures(calls_read_work(call).stream);

	if (has_gone)
		measure_called(&gate->measure);
	else if (passage->is_measured)
		measure_drop(&gate->measure);
	if (passage->is_entering)
		atomic_fetch_sub(&gate->entering, 1);
	if (passage->moved) {
		uint64_t now = process_clock_ns(), began = atomic_load(&passage->moved->until), cost = now - min_u64(now, began);

		atomic_store(&passage->moved->until, now + GRAPH_COSTS * cost);
	}
	if (has_gone)
		watch(gate);
}
