#include "gate.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/graph_instances.h"
#include "driver/streams.h"
#include "gates.h"
#include "hold.h"
#include "launch/space/epoch.h"
#include "launch/space/yielding.h"
#include "window.h"

#include <errno.h>
#include <pthread.h>

atomic_bool gate_listens, gate_hears_waits, gate_hears_host;

static const struct launch_end none = {.number = 0};

#define GRAPH_COSTS 20 /* after so many times the cost of a change, a graph may change to more TPCs again */

/* --- waits -------------------------------------------------------------------------------------------------------- */

static void make_stream_wait(const struct call *call)
{
	CUstream stream = calls_waiting_stream(call);

	if (calls_wait_for_event(call->id))
		streams_wait_for_event(stream, call->context, atomic_load(&gate_state.has_gpus));
	else
		streams_wait(stream, call->context);
}

/* A context's gate is looked up again after each change of the epoch. */
static inline struct gate *gate_of(struct frame *frame, CUcontext context)
{
	uint64_t epoch = epoch_now();

	if (frame->gate_context != context || frame->gate_epoch != epoch || !frame->gate) {
		frame->gate = gates_of(contexts_gpu(context));
		frame->gate_context = context;
		frame->gate_epoch = epoch;
	}
	return frame->gate;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* A number for a set of TPCs (graph_instances.h); 0: the partition. */
static uint64_t number_of(const struct tpcset *tpcs)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < TPCSET_WORDS; i++)
		number = (number ^ tpcs->words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return number | 1;
}

static enum graph_move move_graph(const struct arrival *arrival, struct frame *frame, uint64_t place, bool may_move)
{
	uint64_t now = process_clock_ns();
	enum graph_move move = graph_instances_move((CUgraphExec)arrival->work.what, place, may_move);

	if (move == GRAPH_MOVES) {
		atomic_store(&gate_state.graphs_have_moved, true);
		frame->moves_since = now;
	}
	return move;
}

/* The place of the graph's nodes for this launch. A graph does not change to more TPCs again and again: meanwhile the
 * graph stays in the own part. */
static void settle_graph(const struct arrival *arrival, struct frame *frame)
{
	const struct claims *claims = &arrival->gate->claims;
	uint64_t in_part = claims->is_narrow ? number_of(&claims->part) : 0;
	uint64_t place = frame->has_more ? number_of(&frame->more) : in_part;
	bool may_move = !frame->has_more || !claims->has_part ||
	                process_clock_ns() >= atomic_load(&arrival->length->until);

	if (move_graph(arrival, frame, place, may_move) == GRAPH_STAYS) {
		in_flight_tell(&arrival->gate->in_flight, frame->ticket, none); /* no wide launch runs */
		frame->has_more = false;
		frame->ticket = 0;
		move_graph(arrival, frame, in_part, true);
	}
}

static void graph_has_moved(const struct call *call)
{
	struct length *length = window_length_of(call->frame->cookie);
	uint64_t now = process_clock_ns();

	atomic_store(&length->until, now + GRAPH_COSTS * (now - call->frame->moves_since));
	call->frame->moves_since = 0;
}

/* --- a call begins ------------------------------------------------------------------------------------------------ */

/* Whether the launch may wait for any time, behind a wait of the stream. */
static bool may_wait_in_stream(const struct arrival *arrival)
{
	return streams_some_wait() && streams_may_wait(arrival->work.stream, arrival->call->context,
	                                               window_is_idle(arrival->gate));
}

/* A graph may start as soon as the GPU is told, if nothing is in flight. */
static void decide_graph(struct arrival *arrival)
{
	struct gate *gate = arrival->gate;

	if (!arrival->work.waits_for_others && window_is_idle(gate) && !may_wait_in_stream(arrival)) {
		arrival->ticket = window_admit(gate, arrival->length, &arrival->open);
		arrival->more = window_tpcs(gate, arrival->open)->tpcs;
	}
}

/* The launch may be wide from the moment when the launch is in the pushbuffer, unless the launch `stays`; and at once,
 * unless the launch may wait for any time. */
static uint64_t cookie_of(const struct arrival *arrival, bool stays, bool may_wait, bool waits)
{
	return (union window_cookie){
		.is_there = true,
		.length = lengths_number(arrival->length),
		.gpu = arrival->gate->gpu->number,
		.stays = stays || arrival->work.waits_for_others,
		.waits = waits,
		.may_wait = may_wait,
		.edits = epoch_of_edits(),
	}.word;
}

/* Without the lock, the launch stays where a wait has put the launch, or in the own part. */
static void answer(const struct arrival *arrival, struct frame *frame, bool has_lock)
{
	bool waits = streams_next_waits(arrival->work.stream, arrival->call->context);
	bool may_wait = !has_lock || may_wait_in_stream(arrival);

	frame->has_more = arrival->open != 0;
	frame->more = arrival->more;
	frame->ticket = arrival->ticket;
	frame->cookie = cookie_of(arrival, !has_lock || arrival->work.is_graph || frame->has_more, may_wait, waits);
}

/* The length of a graph is measured from the call to the end of all work. */
static void answer_graph(const struct arrival *arrival, struct frame *frame)
{
	struct gate *gate = arrival->gate;
	enum length_place place = frame->has_more ? LENGTH_MORE : LENGTH_PART;

	if (window_is_due(gate, arrival->length, place) && window_is_idle(gate))
		frame->launched_ns = process_clock_ns();
	settle_graph(arrival, frame);
}

/* The lock is not free while the thread with the lock stands still. */
static void decide(struct arrival *arrival, struct frame *frame)
{
	const struct claims *claims = &arrival->gate->claims;
	bool is_graph = arrival->work.is_graph, has_lock = gate_lock_soon(arrival->gate, 0);

	if (has_lock && is_graph && claims->count > 0 && arrival->ticket == 0 && claims->has_part)
		decide_graph(arrival);
	answer(arrival, frame, has_lock);
	if (is_graph && has_lock)
		answer_graph(arrival, frame);
	else if (is_graph)
		move_graph(arrival, frame, frame->has_more ? number_of(&frame->more) : 0, true);
	if (has_lock)
		gate_unlock(arrival->gate);
}

/* A launch may wait here. Until the call has ended, the thread is not cancelled: no other thread would go on with the
 * launch. */
static bool keep_thread(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state == PTHREAD_CANCEL_ENABLE;
}

/* A signal's handler may have launched during the wait of the launch. From here on, launches of a handler are inside of
 * the call. */
static void begin(const struct call *call)
{
	struct frame *frame = call->frame;
	struct arrival arrival = {.gate = gate_of(frame, call->context), .call = call, .work = calls_read_work(call)};

	if (!arrival.gate || !arrival.work.what)
		return;
	arrival.length = lengths_find(&arrival.work);
	bool may_wait = hold_may_be(arrival.gate, call->id), is_cancellable = may_wait && keep_thread();
	bool some_wait = streams_some_wait();

	if (may_wait)
		hold_until_it_goes(&arrival);
	frame->is_entering = may_wait && !arrival.is_captured;
	frame->is_cancellable = is_cancellable;
	if (may_wait || arrival.work.is_graph || some_wait)
		decide(&arrival, frame);
	else
		frame->cookie = cookie_of(&arrival, false, false, false);
	if (some_wait)
		streams_launch(arrival.work.stream, call->context);
}

/* A thread that never launches may wait all the time. A wait that was left by a jump ends with the next wait of the
 * thread. */
static void block(struct frame *frame)
{
	if (frame->recent.context && !frame->is_blocked)
		atomic_fetch_add(&gate_state.blocked, 1);
	frame->is_blocked = frame->recent.context;
}

static void unblock(struct frame *frame)
{
	if (frame->is_blocked)
		atomic_fetch_sub(&gate_state.blocked, 1);
	frame->is_blocked = false;
}

void gate_call_begins(const struct call *call)
{
	struct frame *frame = call->frame;
	int saved = errno;

	if (calls_block(call->id)) {
		block(frame);
	} else if (calls_make_stream_wait(call->id)) {
		make_stream_wait(call);
	} else {
		if (frame->nested == 0 && atomic_load_explicit(&gate_state.is_open, memory_order_relaxed))
			begin(call);
		frame->nested++;
	}
	errno = saved;
}

/* --- a launch goes, and ends -------------------------------------------------------------------------------------- */

/* The length of a launch is learnt now and then. */
static void learn(struct gate *gate, const struct frame *frame, uint64_t ticket, struct launch_end end,
                  uint64_t launched_ns)
{
	struct length *length = window_length_of(frame->cookie);

	ticket = ticket != 0 ? ticket : window_follow(gate, length, end);
	in_flight_learn(&gate->in_flight, ticket, length, frame->front, launched_ns);
}

/* Behind unknown work, a launch may wait for long, unless nothing else is in flight. */
static bool begin_is_known(const struct gate *gate, const struct frame *frame)
{
	return !frame->is_behind_unknown ||
	       (gate->claims.own_is_known && claims_own_in_flight(&gate->claims) <= 1);
}

/* With nothing ahead, the GPU waits for the host. Further TPCs seldom gain more than half of the length; and the host
 * pays some 0.5 us for a wide launch. */
#define SHORT_NS UINT64_C(16000) /* with the way to the GPU, some 5 us */

/* While launches are wide, each launch looks for claims that came back. */
static bool is_too_short(struct gate *gate, const struct frame *frame)
{
	const struct length *length = window_length_of(frame->cookie);
	uint64_t ns = max_u64(lengths_ns(length, LENGTH_PART), lengths_ns(length, LENGTH_MORE));
	bool is_short = ns != 0 && ns < SHORT_NS && !frame->is_behind_unknown;

	if (is_short && gate->in_flight.wide > 0)
		window_sweep(gate);
	return is_short && gate->in_flight.wide == 0;
}

/* Nothing is known to run ahead of the launch. */
static bool may_start(struct gate *gate, const struct frame *frame)
{
	union window_cookie cookie = {.word = frame->cookie};
	bool is_decided = frame->ticket != 0 || !gate->claims.has_part;

	return gate->claims.count > 0 && !is_decided && frame->front.number == 0 && !frame->keeps_mask &&
	       !cookie.stays && !cookie.may_wait && gate->claims.own_is_known && !is_too_short(gate, frame);
}

/* The launch cannot be changed later. */
static void decide_now(struct gate *gate, const struct launch *launch, const struct submission *submission,
                       struct launch_end end)
{
	const struct frame *frame = &launch->frame;
	struct length *length = window_length_of(frame->cookie);
	uint64_t ticket = frame->ticket;

	if (may_start(gate, frame))
		ticket = window_widen(gate, launch, submission, length, end);
	bool is_wide = frame->has_more || ticket != frame->ticket;

	if (window_is_due(gate, length, is_wide ? LENGTH_MORE : LENGTH_PART) && begin_is_known(gate, frame))
		learn(gate, frame, ticket, end, process_clock_ns());
}

void gate_submits(struct launch *launch, const struct submission *submission, struct launch_end end)
{
	struct frame *frame = &launch->frame;
	struct gate *gate = frame->nested > 0 && frame->cookie != 0 ? frame->gate : NULL;

	if (!gate)
		return;
	if (gate_lock(gate)) {
		if (frame->is_noted && !frame->has_more)
			window_move(gate, end);
		else
			decide_now(gate, launch, submission, end);
		gate_unlock(gate);
	}
	if (frame->ticket != 0)
		in_flight_tell(&gate->in_flight, frame->ticket, end);
	frame->ticket = 0;
}

/* The end of a launch, where the end was not told. A captured launch becomes a node of a graph. */
static struct launch_end end_of(const struct call *call)
{
	const struct launch_end *end = &call->frame->end;
	const struct launched_work work = calls_read_work(call);

	if (*call->result != CUDA_SUCCESS || (!work.is_graph && driver_captures(work.stream)))
		return none;
	return !work.is_graph && end->number != 0 ? *end : in_flight_until_idle;
}

/* A signal's handler may launch from here on. */
static void end(const struct call *call)
{
	struct frame *frame = call->frame;
	struct gate *gate = frame->gate; /* since the begin */

	if (!gate)
		return;
	if (calls_run_graph(call->id) && frame->launched_ns != 0 && gate_lock(gate)) {
		frame->front = none;
		learn(gate, frame, frame->ticket, in_flight_until_idle, frame->launched_ns);
		gate_unlock(gate);
	}
	if (frame->ticket != 0)
		in_flight_tell(&gate->in_flight, frame->ticket, end_of(call));
	if (frame->moves_since != 0)
		graph_has_moved(call);
	if (frame->is_entering)
		atomic_fetch_sub(&gate_state.entering, 1);
	frame->has_more = frame->is_entering = false;
	frame->ticket = frame->cookie = frame->launched_ns = 0;
	if (frame->is_cancellable)
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	frame->is_cancellable = false;
}

void gate_call_ended(const struct call *call)
{
	int saved = errno;

	if (calls_block(call->id))
		unblock(call->frame);
	else if (!calls_make_stream_wait(call->id) && call->frame->nested > 0 && --call->frame->nested == 0)
		end(call);
	errno = saved;
}

void gate_after_fork(void)
{
	gates_after_fork();
	lengths_forget();
	streams_forget();
	yielding_after_fork();
}
