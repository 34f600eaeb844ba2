#include "gate.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "base/futex.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/graph_instances.h"
#include "driver/hook.h"
#include "launch/space/epoch.h"
#include "launch/space/residency.h"
#include "streams.h"
#include "time/demand/wakeup.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#define LOOKS_AT_ONCE 40 /* of a launch that waits; then after a pause, and for the quota after another one */
#define PAUSE_US 20
#define QUOTA_PAUSE_NS UINT64_C(10000000)

/* A graph changes its TPCs for more after so many times what a change costs. */
#define GRAPH_COSTS 20

struct gate_state gate_state = {.left_ns = UINT64_MAX};

static struct lending_episode episode;

/* Of one GPU, by gpus_number. */
static struct gate {
	struct others_on_gpu views[2];
	atomic_uint current;        /* which of them */
	atomic_uint readers[2];
	atomic_uint entering;       /* launches between their call's entry and its end, which may not be counted yet */
	_Atomic uint64_t longest_ns; /* since nothing was in flight */
	atomic_bool drains_no_more; /* until nothing is in flight: it took too long */
	_Atomic uint32_t last_how;  /* the last launch went */
	struct measure measure;
} gates[GPUS_MAX];

/* Where a launch goes: the TPCs that it may use, as a number. None: its partition. */
#define WHERE_PART UINT32_C(0x10000)
#define WHERE_MORE UINT32_C(0x20000) /* and a bit for each of the others whose TPCs are open; */
#define WHERE_OWN UINT32_C(0x40000)  /* but only those of its partition */

#define WHERE(others, how) ((uint64_t)(others)->generation << 32 | (how))

/* What this thread's current call launches. */
static __thread struct own {
	uint64_t where;
	struct gate *gate;
	CUcontext context;     /* on which it has launched last, */
	uint64_t epoch;        /* at this epoch: then `gate` is its GPU's */
	struct length *moved;  /* a graph whose nodes the call uploads anew */
	uint16_t depth;        /* of calls */
	bool is_entering;
	bool is_measured;
	bool is_cancellable; /* again, when the call has ended */
} own __attribute__((tls_model("initial-exec")));

/* --- views ------------------------------------------------------------------------------------------------------------ */

/* While a thread reads a view, our thread does not write it. */
static unsigned int enter(struct gate *gate)
{
	unsigned int side;

	while (side = atomic_load(&gate->current), atomic_fetch_add(&gate->readers[side], 1), atomic_load(&gate->current) != side)
		atomic_fetch_sub(&gate->readers[side], 1);
	return side;
}

static void leave(struct gate *gate, unsigned int side)
{
	atomic_fetch_sub_explicit(&gate->readers[side], 1, memory_order_release);
}

/* What the last launch uses beyond the process's own, if anything is in flight. */
static void add_borrowed(struct gate *gate, const struct others_on_gpu *others, struct tpcset *borrowed)
{
	uint32_t how = atomic_load(&gate->last_how);
	bool is_more = how & WHERE_MORE && !(how & WHERE_OWN) && others_own_in_flight(others) > 0;
	struct tpcset tpcs = others_tpcs(others, is_more ? how & (WHERE_PART - 1) : 0);

	tpcs = tpcset_without(&tpcs, &others->all_own);
	*borrowed = tpcset_or(borrowed, &tpcs);
}

bool gate_see(const struct gpu *gpu, const struct others_rules *rules, struct tpcset *borrowed)
{
	struct gate *gate = &gates[gpus_number(gpu)];
	unsigned int side = atomic_load(&gate->current);
	bool is_free = atomic_load(&gate->readers[!side]) == 0;

	add_borrowed(gate, &gate->views[side], borrowed);
	if (is_free) {
		others_see(&gate->views[!side], &gate->views[side], gpu->pci, rules);
		atomic_store(&gate->current, !side);
		if (gate->views[!side].count > 0 && !atomic_exchange(&gate_state.is_needed, true))
			epoch_raise(); /* what was decided before is for fills, too */
	}
	return is_free;
}

bool gate_former_are_free(void)
{
	bool are_free = true;

	for (struct gate *gate = gates; gate < gates + GPUS_MAX; gate++)
		are_free = are_free && atomic_load(&gate->readers[!atomic_load(&gate->current)]) == 0;
	return are_free;
}

/* --- deciding --------------------------------------------------------------------------------------------------------- */

/* A launch, from its call's entry until it goes. */
struct arrival {
	struct gate *gate;
	const struct call *call;
	struct launched_work work;
	struct length *length;
	uint32_t number;  /* of its function and grid */
	uint64_t since;   /* it waits; 0: it does not; */
	uint64_t in_flight; /* with so many then */
	bool is_captured; /* it will not run now */
	uint32_t how;     /* it goes */
	bool has_part;    /* its own part holds it; */
	bool never_fits;  /* its partition does not */
	uint64_t in_part; /* where it would go there */
};

/* 0 where it is measured now: what was too long is measured again. */
static uint64_t length_of(const struct arrival *arrival, const struct others_on_gpu *others)
{
	uint64_t length = atomic_load_explicit(&arrival->length->ns, memory_order_relaxed);

	if (others->own_is_unknown)
		length = LENDING_NEVER;
	else if (length > others->limit_ns && length != LENDING_NEVER && lending_is_due(arrival->number, true))
		length = 0;
	return length;
}

/* Whether a launch whose blocks must run at once has room in its own part, or at least in its partition. */
static void see_room(struct arrival *arrival, const struct others_on_gpu *others)
{
	struct launch_request request;

	arrival->has_part = others->has_part;
	arrival->never_fits = false;
	if (!calls_may_launch_at_once(arrival->call->id) || !calls_read_request(arrival->call, &request) ||
	    (request.shape.cluster <= 1 && request.shape.cooperative == 0))
		return;
	const struct gpu *gpu = gpus_of_context(arrival->call->context);

	if (!gpu || !gpu->topology)
		return;
	arrival->has_part = others->has_part && residency_holds(gpu, &request, &others->part);
	arrival->never_fits = !residency_holds(gpu, &request, &others->all_own);
}

/* Whether it waits for room: not for longer than LIMIT; and no launch does where nothing has ended meanwhile. */
static bool drains(const struct arrival *arrival, const struct others_on_gpu *others, uint64_t in_flight, uint64_t now)
{
	bool has_waited = arrival->since != 0 && now - arrival->since >= others->limit_ns;

	if (has_waited && in_flight >= arrival->in_flight)
		atomic_store(&arrival->gate->drains_no_more, true);
	return !has_waited && !atomic_load_explicit(&arrival->gate->drains_no_more, memory_order_relaxed);
}

/* Whether it goes. */
static bool ask(struct arrival *arrival, struct others_on_gpu *others, struct lending_view *view)
{
	uint32_t open = others_open(others);

	view->has_more = arrival->work.is_cooperative ? others_open_own(others, open) : open != 0;
	view->has_part = arrival->has_part;
	enum lending_verdict verdict = lending_ask(view);

	if (verdict == LENDING_MORE)
		arrival->how = WHERE_MORE | open | (arrival->work.is_cooperative ? WHERE_OWN : 0);
	if (verdict == LENDING_MORE && !atomic_load_explicit(&gate_state.has_more, memory_order_relaxed))
		atomic_store(&gate_state.has_more, true);
	else if (verdict == LENDING_PART && open != 0 && view->length_ns > view->limit_ns)
		atomic_store(&gate_state.is_too_long, true);
	return verdict == LENDING_MORE || verdict == LENDING_PART;
}

/* What is in flight must end within what is left: one launch may overrun. Nobody waits for ever for what may itself wait for the
 * launch: so where something is left, or the process has work in flight on several GPUs. */
static bool is_held_by_quota(const struct arrival *arrival, const struct lending_view *view, uint64_t now)
{
	uint64_t left = atomic_load_explicit(&gate_state.left_ns, memory_order_relaxed);
	bool is_held = left == 0 || (left != UINT64_MAX && view->in_flight > 0 && !lending_ends_within(view, left));
	bool has_waited = arrival->since != 0 && now - arrival->since >= LENDING_EPISODE_NS;

	return is_held && !(has_waited && (left != 0 || atomic_load(&gate_state.is_spread)));
}

/* Nobody waits for longer than an episode, whatever others of the process launch meanwhile. */
static bool ends_episode(uint64_t now, uint64_t since)
{
	bool is_over = now != 0 && (lending_waits(&episode, now) || now - since >= LENDING_EPISODE_NS);

	if (is_over)
		atomic_fetch_add(&gate_state.bounded, 1);
	return is_over;
}

/* Nobody waits for room that will never be there. Who goes although it was to wait stays in its own part where that holds it. */
static bool is_permitted(struct arrival *arrival, struct others_on_gpu *others, struct lending_view *view, uint64_t now)
{
	bool is_free = atomic_load_explicit(&episode.until, memory_order_relaxed) != 0 &&
	               lending_is_free(&episode, process_clock_ns(), view->in_flight == 0 && !atomic_load(&gate_state.is_spread));

	see_room(arrival, others);
	bool goes = is_free || arrival->never_fits || ask(arrival, others, view) || ends_episode(now, arrival->since);

	if (goes && arrival->how == 0 && arrival->has_part && others->is_narrow)
		arrival->how = WHERE_PART;
	return goes;
}

/* Whether the launch goes now, and then how. */
static bool decide(struct arrival *arrival, struct others_on_gpu *others, uint64_t in_flight)
{
	uint64_t now = arrival->since != 0 ? process_clock_ns() : 0;
	struct lending_view view = {
		.length_ns = length_of(arrival, others),
		.may_wait = streams_may_wait(arrival->work.stream, in_flight == 0),
		.takes_any = atomic_load_explicit(&gate_state.takes_any, memory_order_relaxed),
		.may_drain = drains(arrival, others, in_flight, now),
		.in_flight = in_flight,
		.longest_ns = atomic_load_explicit(&arrival->gate->longest_ns, memory_order_relaxed),
		.limit_ns = others->limit_ns,
		.batch_ns = others->batch_ns,
	};
	bool goes = true;

	arrival->how = 0;
	if (!atomic_load(&gate_state.is_open) || arrival->is_captured)
		goes = true;
	else if (is_held_by_quota(arrival, &view, now))
		goes = false;
	else if (others->count > 0)
		goes = is_permitted(arrival, others, &view, now);
	return goes;
}

/* --- going ------------------------------------------------------------------------------------------------------------ */

static void go(struct arrival *arrival, struct others_on_gpu *others, uint64_t in_flight)
{
	struct gate *gate = arrival->gate;
	uint64_t ns = atomic_load_explicit(&arrival->length->ns, memory_order_relaxed), longest = ns != 0 ? ns : LENDING_NEVER;

	own.is_entering = true;
	lending_goes(&episode);
	if (longest > atomic_load_explicit(&gate->longest_ns, memory_order_relaxed))
		atomic_store_explicit(&gate->longest_ns, longest, memory_order_relaxed);
	streams_launched(arrival->work.stream);
	measure_disturb(&gate->measure, &arrival->work);
	if (in_flight == 0 && ns != LENDING_NEVER && (ns == 0 || lending_is_due(arrival->number, ns > others->limit_ns)))
		own.is_measured = measure_begin(&gate->measure, others, arrival->length, &arrival->work, arrival->how >= WHERE_MORE);
	atomic_store_explicit(&gate->last_how, arrival->how, memory_order_relaxed);
	if (in_flight == 0 && atomic_load_explicit(&gate_state.left_ns, memory_order_relaxed) != UINT64_MAX)
		wakeup_ring();
}

/* One look. Returns whether it goes, to `where`. Of two that look at the same time, one sees the other. */
static bool try(struct arrival *arrival, uint64_t *where)
{
	struct gate *gate = arrival->gate;
	unsigned int side = enter(gate);
	struct others_on_gpu *others = &gate->views[side];
	uint64_t entering = atomic_fetch_add(&gate->entering, 1), in_flight = others_own_in_flight(others) + entering;

	if (in_flight == 0) {
		atomic_store_explicit(&gate->longest_ns, 0, memory_order_relaxed);
		atomic_store_explicit(&gate->drains_no_more, false, memory_order_relaxed);
	}
	if (atomic_load_explicit(&gate->measure.is_on, memory_order_relaxed) && measure_look(&gate->measure, others))
		atomic_fetch_add(&gate_state.overruns, 1);
	if (arrival->since == 0)
		arrival->in_flight = in_flight;
	bool goes = decide(arrival, others, in_flight);

	if (goes && !arrival->is_captured)
		go(arrival, others, in_flight);
	else
		atomic_fetch_sub(&gate->entering, 1);
	*where = arrival->how != 0 ? WHERE(others, arrival->how) : 0;
	arrival->in_part = others->is_narrow ? WHERE(others, WHERE_PART) : 0;
	leave(gate, side);
	return goes;
}

/* --- graphs ----------------------------------------------------------------------------------------------------------- */

/* Where its nodes are when this call launches it. Not for more TPCs again and again: then it stays in its own part. */
static void settle_graph(struct arrival *arrival, uint64_t *where)
{
	CUgraphExec exec = (CUgraphExec)arrival->work.what;
	bool may_move = process_clock_ns() >= atomic_load(&arrival->length->until) || !(*where & WHERE_MORE) || !arrival->has_part;
	enum graph_move move = graph_instances_move(exec, *where, may_move);

	if (move == GRAPH_STAYS) {
		*where = arrival->in_part;
		move = graph_instances_move(exec, *where, true);
	}
	if (move == GRAPH_MOVES) {
		atomic_store(&arrival->length->until, process_clock_ns());
		own.moved = arrival->length;
	}
}

/* --- waiting ---------------------------------------------------------------------------------------------------------- */

/* Who has waited for long may see the end later: by a part of that. */
static void pause_before_look(const struct arrival *arrival, unsigned int looks)
{
	uint32_t heard = atomic_load(&gate_state.news);

	if (atomic_load(&gate_state.left_ns) == 0)
		futex_wait_until(&gate_state.news, heard, process_clock_ns() + QUOTA_PAUSE_NS);
	else if (looks < LOOKS_AT_ONCE)
		sched_yield();
	else
		clock_pause_us((long)max_u64(PAUSE_US, (process_clock_ns() - arrival->since) / 64000));
}

/* It sleeps as shortly as it asks for. */
static void wait(struct arrival *arrival, uint64_t *where)
{
	int slack = prctl(PR_GET_TIMERSLACK);

	prctl(PR_SET_TIMERSLACK, 1UL);
	arrival->since = process_clock_ns();
	atomic_fetch_add(&gate_state.waiting, 1);
	wakeup_ring();
	for (unsigned int looks = 0; !try(arrival, where); looks++)
		pause_before_look(arrival, looks);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	atomic_fetch_sub(&gate_state.waiting, 1);
	atomic_fetch_add(&gate_state.held, 1);
	atomic_fetch_add(&gate_state.held_ns, process_clock_ns() - arrival->since);
}

/* A captured launch becomes a node of a graph. The stream that all contexts have is never captured. */
static bool is_captured(CUstream stream)
{
	return stream != CU_STREAM_LEGACY && driver_captures(stream);
}

static uint64_t pass(struct gate *gate, const struct call *call)
{
	struct arrival arrival = {.gate = gate, .call = call, .work = calls_read_work(call)};
	uint64_t where = 0;

	if (!arrival.work.what)
		return 0;
	arrival.length = lengths_find(&arrival.work);
	arrival.number = atomic_load_explicit(&arrival.length->launches, memory_order_relaxed) + 1;
	atomic_store_explicit(&arrival.length->launches, arrival.number, memory_order_relaxed);
	if (!try(&arrival, &where)) {
		arrival.is_captured = is_captured(arrival.work.stream);
		if (arrival.is_captured)
			try(&arrival, &where);
		else
			wait(&arrival, &where);
	}
	if (arrival.work.is_graph)
		settle_graph(&arrival, &where);
	return where;
}

/* --- calls ------------------------------------------------------------------------------------------------------------ */

bool gate_wants_call(int id)
{
	return atomic_load_explicit(&gate_state.listens, memory_order_relaxed) &&
	       (calls_launch(id) || calls_launch_graph(id) || calls_make_stream_wait(id));
}

/* Until its call has ended: it would leave the launch to nobody. */
static void be_not_cancelled(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	own.is_cancellable = own.is_cancellable || state == PTHREAD_CANCEL_ENABLE;
}

static bool only_uploads(int id)
{
	return calls_launch_graph(id) && !calls_run_graph(id);
}

static struct gate *gate_of(CUcontext context)
{
	uint64_t epoch = epoch_now();

	if (own.context != context || own.epoch != epoch) {
		const struct gpu *gpu = gpus_of_context(context);

		own.gate = gpu ? &gates[gpus_number(gpu)] : NULL;
		own.context = context;
		own.epoch = epoch;
	}
	return own.gate;
}

bool gate_call_begins(const struct call *call)
{
	bool goes_elsewhere = false;
	int saved = errno;

	if (!calls_launch_kernel(call->id) && calls_make_stream_wait(call->id)) {
		streams_wait(calls_waiting_stream(call));
	} else if (only_uploads(call->id)) {
		graph_instances_lose_place((CUgraphExec)calls_read_work(call).what);
	} else if (own.depth > 0) {
		own.depth++;
	} else {
		struct gate *gate = atomic_load(&gate_state.is_needed) ? gate_of(call->context) : NULL;

		if (gate)
			be_not_cancelled();
		uint64_t where = gate ? pass(gate, call) : 0;

		goes_elsewhere = where != own.where;
		own.where = where;
		/* A signal's handler may have launched while this one has waited, perhaps on another GPU. */
		own.depth = 1;
		if (own.gate != gate)
			own.context = NULL;
		own.gate = gate;
	}
	errno = saved;
	return goes_elsewhere;
}

bool gate_call_ended(const struct call *call)
{
	bool is_other = !calls_launch_kernel(call->id) && (calls_make_stream_wait(call->id) || only_uploads(call->id));

	if (own.depth == 0 || is_other || --own.depth > 0)
		return own.depth == 0;
	if (own.is_measured) {
		own.is_measured = false;
		if (*call->result != CUDA_SUCCESS || is_captured(calls_read_work(call).stream))
			measure_drop(&own.gate->measure);
	}
	if (own.is_entering) {
		atomic_fetch_sub(&own.gate->entering, 1);
		own.is_entering = false;
	}
	if (own.moved) {
		uint64_t now = process_clock_ns(), cost = now - atomic_load(&own.moved->until);

		atomic_store(&own.moved->until, now + GRAPH_COSTS * cost);
		own.moved = NULL;
	}
	if (own.is_cancellable) {
		own.is_cancellable = false;
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	}
	return true;
}

bool gate_is_outside(void)
{
	return own.depth == 0 && atomic_load(&gate_state.is_needed);
}

static bool tpcs_outside(struct gate *gate, struct tpcset *tpcs)
{
	unsigned int side = enter(gate);
	const struct others_on_gpu *others = &gate->views[side];
	struct tpcset inside = tpcset_and(&others->part, tpcs);
	bool is_else = atomic_load(&gate_state.is_open) && others->is_narrow && !tpcset_is_empty(&inside);

	if (is_else)
		*tpcs = inside;
	leave(gate, side);
	return is_else;
}

/* TPCs that a change of the partition has taken away meanwhile are not used. */
bool gate_tpcs(const struct gpu *gpu, struct tpcset *tpcs)
{
	bool is_else = own.depth > 0 && own.where != 0 && own.gate == &gates[gpus_number(gpu)];

	if (own.depth == 0) {
		is_else = tpcs_outside(&gates[gpus_number(gpu)], tpcs);
	} else if (is_else) {
		unsigned int side = enter(own.gate);
		const struct others_on_gpu *others = &own.gate->views[side];
		bool is_current = others->generation == own.where >> 32;
		uint32_t open = is_current && (own.where & WHERE_MORE) ? (uint32_t)own.where & (WHERE_PART - 1) : 0;
		struct tpcset all = others_tpcs(others, open), inside = tpcset_and(&all, tpcs);
		struct tpcset outside = own.where & WHERE_OWN ? (struct tpcset){{0}} : tpcset_without(&all, &others->all_own);

		*tpcs = is_current || others->has_part ? tpcset_or(&inside, &outside) : *tpcs;
		leave(own.gate, side);
	}
	return is_else;
}

/* --- our thread ------------------------------------------------------------------------------------------------------- */

void gate_open(void)
{
	atomic_store(&gate_state.is_open, true);
	if (!atomic_exchange(&gate_state.listens, true))
		hook_want_more();
}

void gate_set_left(uint64_t ns)
{
	if (ns != UINT64_MAX)
		atomic_store(&gate_state.is_needed, true);
	if (atomic_exchange(&gate_state.left_ns, ns) == 0 && ns != 0) {
		atomic_fetch_add(&gate_state.news, 1);
		futex_wake(&gate_state.news, INT_MAX);
	}
}

void gate_close(void)
{
	atomic_store(&gate_state.is_open, false);
	gate_set_left(UINT64_MAX);
}

uint64_t gate_look(uint64_t now)
{
	uint64_t until = UINT64_MAX;

	for (struct gate *gate = gates; gate < gates + GPUS_MAX; gate++) {
		unsigned int side = enter(gate);
		bool is_on = atomic_load(&gate->measure.is_on);

		if (measure_look(&gate->measure, &gate->views[side]))
			atomic_fetch_add(&gate_state.overruns, 1);
		if (is_on)
			until = min_u64(until, now + max_u64(PAUSE_US * 1000, (now - min_u64(now, atomic_load(&gate->measure.began))) / 16));
		leave(gate, side);
	}
	return until;
}

void gate_after_fork(void)
{
	memset(gates, 0, sizeof gates);
	memset(&episode, 0, sizeof episode);
	memset(&gate_state, 0, sizeof gate_state);
	gate_close();
	lengths_forget();
	streams_forget();
	own = (struct own){.where = 0};
}
