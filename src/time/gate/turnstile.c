#include "turnstile.h"

#include "base/futex.h"
#include "base/process_clock.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/releases.h"
#include "launch/graphs/counts.h"
#include "launch/space/stepping_fit.h"
#include "time/demand/wakeup.h"
#include "turnstile_parts.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct turnstile turnstile;

/* What this thread's current call launches. */
static __thread struct own {
	struct gate *gate;
	struct in_flight_launch *launch; /* NULL: it does not go through the turnstile */
	unsigned int depth;              /* of calls inside of that one */
	int cancel_state;                /* before it */
	const struct stamps *stamps;     /* where its record is, if it has one */
	uint64_t record;
} own __attribute__((tls_model("initial-exec")));

/* --- what waits and what is in flight --------------------------------------------------------------------------------- */

void turnstile_use_gate(struct gate *gate, struct pci_address pci)
{
	bool is_used = false;

	for (unsigned int i = 0; i < turnstile.used_count && !is_used; i++)
		is_used = turnstile.used[i] == gate;
	if (!is_used) {
		gate->pci = pci;
		turnstile.used[turnstile.used_count++] = gate;
	}
}

void turnstile_put_right(struct gate *gate)
{
	if (atomic_load(&gate->gone) > 0)
		gate->ready -= atomic_exchange(&gate->gone, 0);
	if (atomic_load(&turnstile.gone_ns) > 0)
		reserve_forget(&turnstile.reserve, atomic_exchange(&turnstile.gone_ns, 0));
}

void turnstile_settle(struct gate *gate, struct in_flight_launch *launch, uint64_t used_ns, uint64_t now)
{
	reserve_ended(&turnstile.reserve, &launch->reserved, used_ns, now);
	in_flight_free(&gate->in_flight, launch);
}

/* Nobody has measured for long: what they speak for counts. */
static void settle_some(struct gate *gate, uint64_t now)
{
	struct in_flight_launch *taken[TURNSTILE_TAKEN];
	unsigned int count = in_flight_take(&gate->in_flight, taken, TURNSTILE_TAKEN);

	for (unsigned int i = 0; i < count; i++)
		turnstile_settle(gate, taken[i], (uint64_t)taken[i]->reserved.needs_ns, now);
}

/* --- asking ---------------------------------------------------------------------------------------------------------- */

/* A launch that comes, until it goes. */
struct arrival {
	struct gate *gate;
	const struct gpu *gpu;
	const struct launched_work *work;
	struct holding_launch holding;
	bool is_known;    /* the gate has seen it */
	bool is_captured; /* it is not held */
	bool stays;       /* it cannot step aside */
};

static bool is_busy_elsewhere(const struct gate *gate)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < turnstile.used_count; i++)
		count += turnstile.used[i] != gate ? in_flight_count(&turnstile.used[i]->in_flight) : 0;
	return count > 0;
}

static void come(struct arrival *arrival)
{
	turnstile_use_gate(arrival->gate, arrival->gpu->pci);
	arrival->holding.reserved = reserve_launch(&turnstile.reserve);
	arrival->is_known = true;
}

static bool ask(struct arrival *arrival, uint64_t now, uint64_t *wake)
{
	struct gate *gate = arrival->gate;
	struct holding *holding = &gate->holding;
	const struct holding_view view = {
		.in_flight = in_flight_look(&gate->in_flight, now),
		.rivals = gate->is_aside && !arrival->stays ? rivals_none : gate->rivals,
		.is_busy_elsewhere = is_busy_elsewhere(gate),
		.is_over = !atomic_load(&turnstile.is_open) || arrival->is_captured,
	};
	bool was_ready = arrival->holding.is_ready;

	holding->policy = turnstile.rules.turn;
	holding->reserve = &turnstile.reserve;
	holding->is_unlimited = !turnstile_limits(&turnstile.rules);
	bool goes = holding_ask(holding, &arrival->holding, &view, now, wake);

	gate->ready += (unsigned int)arrival->holding.is_ready - was_ready;
	return goes;
}

/* NULL if there are too many in flight: then it is not counted as used. */
static struct in_flight_launch *go(struct arrival *arrival, uint64_t now)
{
	struct in_flight *in_flight = &arrival->gate->in_flight;
	struct in_flight_launch *launch = in_flight_add(in_flight);

	if (!launch) {
		settle_some(arrival->gate, now);
		launch = in_flight_add(in_flight);
	}
	if (launch) {
		launch->reserved = arrival->holding.reserved;
		launch->came = now;
	} else {
		reserve_ended(&turnstile.reserve, &arrival->holding.reserved, 0, now);
	}
	return launch;
}

/* Whether it goes; then `*launch` is what is in flight by it. */
static bool try(struct arrival *arrival, struct in_flight_launch **launch, uint64_t *wake)
{
	uint64_t now = process_clock_ns();

	turnstile_put_right(arrival->gate);
	if (!arrival->is_known)
		come(arrival);
	bool goes = ask(arrival, now, wake);

	if (goes)
		*launch = go(arrival, now);
	return goes;
}

/* --- waiting --------------------------------------------------------------------------------------------------------- */

static void go_unseen(const struct arrival *arrival)
{
	if (arrival->holding.is_ready)
		atomic_fetch_add(&arrival->gate->gone, 1);
	if (arrival->holding.reserved.waits)
		atomic_fetch_add(&turnstile.gone_ns, arrival->holding.reserved.needs_ns);
	atomic_fetch_add(&turnstile.unseen, 1);
}

/* Without the lock, it goes uncounted; but one that waits has a bound. */
static bool pass(struct arrival *arrival, struct in_flight_launch **launch, uint64_t *wake)
{
	bool goes = true;

	if (brief_lock(&turnstile.lock)) {
		goes = try(arrival, launch, wake);
		brief_unlock(&turnstile.lock);
	} else {
		goes = !arrival->holding.is_held || process_clock_ns() >= *wake;
		if (goes)
			go_unseen(arrival);
	}
	return goes;
}

/* A captured launch becomes a node of a graph. The stream that all contexts have is never captured. */
static bool is_captured(CUstream stream)
{
	return stream != CU_STREAM_LEGACY && driver_captures(stream);
}

/* For the whole time of it our thread looks often. */
static struct in_flight_launch *wait(struct arrival *arrival, uint32_t heard, uint64_t wake)
{
	struct in_flight_launch *launch = NULL;

	atomic_fetch_add(&turnstile.waiting, 1);
	wakeup_ring();
	do {
		futex_wait_until(&turnstile.news, heard, wake);
		heard = atomic_load(&turnstile.news);
	} while (!pass(arrival, &launch, &wake));
	atomic_fetch_sub(&turnstile.waiting, 1);
	return launch;
}

static struct in_flight_launch *enter(struct arrival *arrival)
{
	uint32_t heard = atomic_load(&turnstile.news);
	struct in_flight_launch *launch = NULL;
	uint64_t wake = 0;

	if (pass(arrival, &launch, &wake))
		return launch;
	arrival->is_captured = is_captured(arrival->work->stream);
	if (arrival->is_captured) {
		arrival->holding.is_held = false;
		pass(arrival, &launch, &wake);
	} else {
		launch = wait(arrival, heard, wake);
	}
	return launch;
}

/* --- calls ----------------------------------------------------------------------------------------------------------- */

bool turnstile_wants_call(int id)
{
	return atomic_load_explicit(&turnstile.listens, memory_order_relaxed) && (calls_launch(id) || calls_run_graph(id));
}

/* A thread that is cancelled wherever it is would leave its launch to nobody: that waits until the call has ended. */
static void begin(const struct call *call, const struct gpu *gpu, const struct launched_work *work)
{
	struct arrival arrival = {.gate = turnstile_gate_of(gpu), .gpu = gpu, .work = work, .stays = !stepping_fits(call, gpu)};
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	own = (struct own){.gate = arrival.gate, .launch = enter(&arrival), .cancel_state = cancel_state};
	if (!own.launch)
		pthread_setcancelstate(cancel_state, NULL);
}

/* Calls inside of a call that goes through it are part of that one. */
void turnstile_call_begins(const struct call *call)
{
	int saved = errno;

	if (own.launch) {
		own.depth++;
	} else if (atomic_load(&turnstile.is_open)) {
		const struct launched_work work = calls_read_work(call);
		const struct gpu *gpu = work.what ? gpus_of_context(call->context) : NULL;

		if (gpu)
			begin(call, gpu, &work);
	}
	errno = saved;
}

void turnstile_launched(const struct stamps *stamps, uint64_t record)
{
	if (own.launch && own.depth == 0) {
		own.stamps = stamps;
		own.record = record;
	}
}

/* Whoever launches a graph whose kernels are counted only when they end does not know when all of them have. */
static void note_graph(const struct call *call)
{
	if (graph_counts_kind(((const struct call_exec *)call->arguments)->exec) != COUNTS_NODE)
		atomic_store(&turnstile.is_blind, true);
}

/* Where the kernels of the graph that this call has launched count; NULL if it has launched none. */
static const struct counts_place *place_of_graph(const struct call *call)
{
	bool has_run = calls_run_graph(call->id) && *call->result == CUDA_SUCCESS && !is_captured(calls_stream_of_graph(call));

	if (has_run)
		note_graph(call);
	const struct releases *releases = has_run ? contexts_find(call->context).releases : NULL;

	return releases && releases->are_ready ? releases->place : NULL;
}

static void be_in_flight(const struct counts_place *place)
{
	if (place)
		in_flight_is_graph(own.launch, place, own.stamps, own.record);
	else if (own.stamps)
		in_flight_is_kernel(own.launch, own.stamps, own.record);
	else
		in_flight_is_nothing(own.launch);
}

/* Without the lock, it is in flight all the same: what is written is this launch's own. */
static void leave(const struct call *call)
{
	const struct counts_place *place = place_of_graph(call);
	bool has_lock = brief_lock(&turnstile.lock);

	be_in_flight(place);
	if (has_lock && calls_is_lost(*call->result))
		in_flight_give_up(&own.gate->in_flight, process_clock_ns());
	if (has_lock)
		brief_unlock(&turnstile.lock);
	int cancel_state = own.cancel_state;

	own = (struct own){.launch = NULL};
	pthread_setcancelstate(cancel_state, NULL);
}

void turnstile_call_ended(const struct call *call)
{
	int saved = errno;

	if (own.depth > 0)
		own.depth--;
	else if (own.launch)
		leave(call);
	errno = saved;
}

bool turnstile_needs_stamps(void)
{
	return atomic_load_explicit(&turnstile.is_open, memory_order_relaxed);
}

void turnstile_after_fork(void)
{
	turnstile.lock = (struct brief_lock){.state = 0};
	for (unsigned int i = 0; i < turnstile.used_count; i++)
		memset(turnstile.used[i], 0, sizeof *turnstile.used[i]);
	turnstile.used_count = 0;
	memset(&turnstile.reserve, 0, sizeof turnstile.reserve);
	atomic_store(&turnstile.gone_ns, 0);
	atomic_store(&turnstile.unseen, 0);
	atomic_store(&turnstile.listens, false);
	atomic_store(&turnstile.is_open, false);
	atomic_store(&turnstile.waiting, 0);
	own = (struct own){.launch = NULL};
}
