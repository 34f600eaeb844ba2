#include "gate.h"

#include "driver/contexts.h"
#include "driver/gpus.h"
#include "driver/streams.h"
#include "gates.h"

#include <errno.h>
#include <pthread.h>

__thread struct gate_own gate_own __attribute__((tls_model("initial-exec")));

/* What this thread's current call was decided to be, or the last one that others go like. */
static __thread struct decided {
	struct gate *gate;
	struct passage passage;
	bool is_cancellable; /* again, when the call has ended */
} own __attribute__((tls_model("initial-exec")));

/* --- calls ------------------------------------------------------------------------------------------------------------ */

bool gate_wants_call(int id)
{
	return atomic_load_explicit(&gate_state.listens, memory_order_relaxed) &&
	       (calls_launch(id) || calls_run_graph(id) || calls_make_stream_wait(id));
}

/* A call with a configuration, whose kernel may be the same as before. */
static bool goes_as_before(const struct call *call)
{
	struct launched_work work = {.what = NULL};

	if (calls_may_launch_at_once(call->id))
		work = calls_read_work(call);
	const struct call_kernel kernel = {(CUfunction)work.what, {work.grid[0], work.grid[1], work.grid[2]}};

	return work.what && !work.waits_for_others && gate_goes_as_before(call->context, &kernel);
}

/* Until its call has ended, the thread is not cancelled: it would leave the launch to nobody. A signal's handler may have
 * launched while this one has waited, perhaps on another GPU; what one launches from here on is inside of this call. */
static bool begin(const struct call *call)
{
	struct gate *gate = &gates[contexts_gpu(call->context)->number];
	int state;

	gate_forget();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	struct passage passage = pass(gate, call, &gate_own.last);

	gate_own.calls = GATE_DECIDED;
	own.is_cancellable = state == PTHREAD_CANCEL_ENABLE;
	bool goes_elsewhere = passage.where != own.passage.where;

	own.passage = passage;
	own.gate = gate;
	return goes_elsewhere;
}

static void make_stream_wait(const struct call *call)
{
	CUstream stream = calls_waiting_stream(call);
	bool matters = true;

	if (calls_wait_for_event(call->id))
		matters = streams_wait_for_event(stream, call->context, atomic_load(&gate_state.has_gpus));
	else
		streams_wait(stream, call->context);
	if (matters)
		epoch_raise_world();
}

bool gate_call_begins(const struct call *call)
{
	bool goes_elsewhere = false;
	int saved = errno;

	if (calls_make_stream_wait(call->id)) {
		make_stream_wait(call);
	} else if (gate_own.calls > 0) {
		gate_own.calls += GATE_NESTED;
	} else if (!goes_as_before(call)) {
		goes_elsewhere = begin(call);
	}
	errno = saved;
	return goes_elsewhere;
}

bool gate_call_ended(const struct call *call)
{
	bool is_other = calls_make_stream_wait(call->id) || gate_own.calls == 0;

	if (!is_other && gate_own.calls >= GATE_NESTED) {
		gate_own.calls -= GATE_NESTED;
	} else if (!is_other && !gate_went_as_before()) {
		const struct decided ended = own;

		/* A signal's handler may launch from here on. */
		own.passage = (struct passage){.where = own.passage.where};
		own.is_cancellable = false;
		gate_own.calls = 0;
		passed(ended.gate, call, &ended.passage);
		if (ended.is_cancellable)
			pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	}
	return gate_own.calls == 0;
}

/* --- where ------------------------------------------------------------------------------------------------------------ */

bool gate_is_outside(void)
{
	return gate_own.calls == 0 && atomic_load(&gate_state.listens);
}

/* A graph may have nodes on other GPUs, which no look has seen. TPCs that a change of the partition has taken away meanwhile
 * are not used. */
bool gate_tpcs(const struct gpu *gpu, struct tpcset *tpcs)
{
	struct gate *gate = &gates[gpu->number];
	bool is_inside = gate_own.calls > 0 && own.gate == gate;
	uint64_t where = is_inside ? own.passage.where : 0;
	const struct others_on_gpu *others = gate_enter(gate);
	bool is_current = where >> 32 == others->generation;
	bool is_else = is_inside ? where != 0 : others->is_narrow && atomic_load(&gate_state.is_open);
	struct tpcset all = others_tpcs(others, is_current ? where_open((uint32_t)where) : 0), more = {{0}};

	if (!is_inside)
		flight_add_unseen(&gate->flight);
	else if (!(where & WHERE_OWN))
		more = tpcset_without(&all, &others->all_own);
	all = tpcset_and(&all, tpcs);
	all = tpcset_or(&all, &more);
	if (is_else && !tpcset_is_empty(&all))
		*tpcs = all;
	gate_leave(gate, others);
	return is_else;
}

void gate_after_fork(void)
{
	gates_after_fork();
	gate_own = (struct gate_own){.calls = 0};
	own = (struct decided){.gate = NULL};
}
