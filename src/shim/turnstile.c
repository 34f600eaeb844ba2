#include "turnstile.h"

#include "allowed.h"
#include "base/brief_lock.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/process_clock.h"
#include "bell.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/hook.h"
#include "driver/releases.h"
#include "epoch.h"
#include "graph_counts.h"
#include "in_flight.h"
#include "stepping.h"
#include "stepping_fit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* How often is looked while somebody waits for the end of a launch; and while anything is in flight, or somebody waits for others. */
#define WAITING_NS (MS / 10)
#define WORKING_NS MS

/* What a reserve has that limits nobody: what is used is counted. */
#define UNLIMITED_NS (100 * MS)

/* So many launches are measured at once. */
#define TAKEN_MAX 64

/* One GPU's. */
struct gate {
	struct pci_address pci;
	bool is_used;                 /* this process has launched there, or is about to */
	uint32_t tpcs;                /* that a launch may use, */
	uint64_t epoch;               /* in this one */
	struct holding holding;
	struct in_flight in_flight;
	struct neighbours neighbours; /* whom launches have to give way to, */
	bool is_aside;                /* but for those that step aside */
	unsigned int ready;           /* so many launches wait, and not for the quota */
	atomic_uint gone;             /* of them, so many have gone without the lock */
};

/* Under the lock, but for the atomic ones. */
static struct brief_lock lock;
static struct gate gates[GPUS_MAX];
static struct turnstile_rules rules;
static struct reserve reserve;            /* of all GPUs together */
static struct prediction_history history; /* has its own rules about threads */
static uint64_t ended;                    /* when our thread saw last that any launch had */
static atomic_bool is_open;               /* launches are held where a rule says so */
static atomic_bool listens;               /* calls are announced to us: from the first time on */
static _Atomic int64_t gone_ns;           /* what launches waited for that have gone without the lock, */
static atomic_uint unseen;                /* and how many have */
static atomic_bool is_blind;              /* launches went whose ends nobody sees */
static atomic_uint waiting;               /* so many threads sleep, or are about to */
static _Atomic uint32_t news;             /* what they sleep on: how often something has changed */

/* What this thread's current call launches. */
static __thread struct own {
	struct gate *gate;
	struct in_flight_launch *launch; /* NULL: it does not go through the turnstile */
	unsigned int depth;              /* of calls inside of that one */
	int cancel_state;                /* before it */
	const struct stamps *stamps;     /* where its record is, if it has one */
	uint64_t record;
} own __attribute__((tls_model("initial-exec")));

/* --- ended launches -------------------------------------------------------------------------------------------------- */

static void settle(struct gate *gate, struct in_flight_launch *launch, uint64_t used_ns, uint64_t now)
{
	reserve_ended(&reserve, &launch->reserved, used_ns, now);
	in_flight_free(&gate->in_flight, launch);
}

/* Nobody has measured for long: what was predicted counts. */
static void settle_some(struct gate *gate, uint64_t now)
{
	struct in_flight_launch *taken[TAKEN_MAX];
	unsigned int count = in_flight_take(&gate->in_flight, taken, TAKEN_MAX);

	for (unsigned int i = 0; i < count; i++)
		settle(gate, taken[i], (uint64_t)taken[i]->reserved.needs_ns, now);
}

/* --- asking ---------------------------------------------------------------------------------------------------------- */

static bool limits(const struct turnstile_rules *of)
{
	return of->run_ns < of->period_ns;
}

/* A launch that comes, until it goes. */
struct arrival {
	struct gate *gate;
	const struct gpu *gpu;
	const struct launched_work *work;
	struct prediction_key key;
	struct prediction predicted;
	struct holding_launch holding;
	bool is_known;    /* the gate has seen it */
	bool is_captured; /* it is not held */
	bool stays;       /* it cannot step aside */
};

static bool is_busy_elsewhere(const struct gate *gate)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < GPUS_MAX; i++)
		count += &gates[i] != gate && gates[i].is_used ? in_flight_count(&gates[i].in_flight) : 0;
	return count > 0;
}

/* Partitions of different sizes make launches of different lengths. */
static uint32_t tpcs_of(struct gate *gate, const struct gpu *gpu)
{
	uint64_t epoch = epoch_now();

	if (gate->epoch != epoch && gpu->topology) {
		struct tpcset allowed = allowed_on(gpu), left = stepping_left(gpu), rest = tpcset_without(&allowed, &left);

		gate->tpcs = tpcset_count(&rest);
		gate->epoch = epoch;
	}
	return gate->tpcs;
}

static void come(struct arrival *arrival)
{
	struct gate *gate = arrival->gate;

	gate->pci = arrival->gpu->pci;
	gate->is_used = true;
	arrival->key = (struct prediction_key){
		.what = arrival->work->what,
		.grid = {arrival->work->grid[0], arrival->work->grid[1], arrival->work->grid[2]},
		.tpcs = tpcs_of(gate, arrival->gpu),
	};
	arrival->predicted = prediction_ask(&history, &arrival->key);
	arrival->holding.reserved = reserve_launch(&reserve, arrival->predicted.ns);
	arrival->is_known = true;
}

static const struct neighbours nobody = {.least_served_ns = UINT64_MAX};

static bool ask(struct arrival *arrival, uint64_t now, uint64_t *wake)
{
	struct gate *gate = arrival->gate;
	struct holding *holding = &gate->holding;
	const struct holding_view view = {
		.in_flight = in_flight_look(&gate->in_flight, now),
		.neighbours = gate->is_aside && !arrival->stays ? nobody : gate->neighbours,
		.is_busy_elsewhere = is_busy_elsewhere(gate),
		.is_over = !atomic_load(&is_open) || arrival->is_captured,
	};
	bool was_ready = arrival->holding.is_ready;

	holding->policy = rules.turn;
	holding->reserve = &reserve;
	holding->is_unlimited = !limits(&rules);
	bool goes = holding_ask(holding, &arrival->holding, &view, now, wake);

	gate->ready += (unsigned int)arrival->holding.is_ready - was_ready;
	return goes;
}

/* Launches that went without the lock wait no more. */
static void put_right(struct gate *gate)
{
	if (atomic_load(&gate->gone) > 0)
		gate->ready -= atomic_exchange(&gate->gone, 0);
	if (atomic_load(&gone_ns) > 0)
		reserve_forget(&reserve, atomic_exchange(&gone_ns, 0));
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
		launch->key = arrival->key;
		launch->predicted = arrival->predicted;
		launch->reserved = arrival->holding.reserved;
		launch->came = now;
	} else {
		reserve_ended(&reserve, &arrival->holding.reserved, 0, now);
	}
	return launch;
}

/* Whether it goes; then `*launch` is what is in flight by it. */
static bool try(struct arrival *arrival, struct in_flight_launch **launch, uint64_t *wake)
{
	uint64_t now = process_clock_ns();

	put_right(arrival->gate);
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
		atomic_fetch_add(&gone_ns, arrival->holding.reserved.needs_ns);
	atomic_fetch_add(&unseen, 1);
}

/* Without the lock, it goes uncounted; but one that waits has a bound. */
static bool pass(struct arrival *arrival, struct in_flight_launch **launch, uint64_t *wake)
{
	bool goes = true;

	if (brief_lock(&lock)) {
		goes = try(arrival, launch, wake);
		brief_unlock(&lock);
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

	atomic_fetch_add(&waiting, 1);
	bell_ring();
	do {
		futex_wait_until(&news, heard, wake);
		heard = atomic_load(&news);
	} while (!pass(arrival, &launch, &wake));
	atomic_fetch_sub(&waiting, 1);
	return launch;
}

static struct in_flight_launch *enter(struct arrival *arrival)
{
	uint32_t heard = atomic_load(&news);
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
	return atomic_load_explicit(&listens, memory_order_relaxed) && (calls_launch(id) || calls_run_graph(id));
}

static struct gate *gate_of(const struct gpu *gpu)
{
	return &gates[gpus_number(gpu)];
}

/* A thread that is cancelled wherever it is would leave its launch to nobody: that waits until the call has ended. */
static void begin(const struct call *call, const struct gpu *gpu, const struct launched_work *work)
{
	struct arrival arrival = {.gate = gate_of(gpu), .gpu = gpu, .work = work, .stays = !stepping_fits(call, gpu)};
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
	} else if (atomic_load(&is_open)) {
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
		atomic_store(&is_blind, true);
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
	bool has_lock = brief_lock(&lock);

	be_in_flight(place);
	if (has_lock && calls_is_lost(*call->result))
		in_flight_give_up(&own.gate->in_flight, process_clock_ns());
	if (has_lock)
		brief_unlock(&lock);
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
	return atomic_load_explicit(&is_open, memory_order_relaxed);
}

/* A graph's handle may be another one's soon. Functions are not forgotten: what is known of another one is corrected as it
 * comes. */
void turnstile_graph_destroyed(const void *exec)
{
	if (atomic_load_explicit(&listens, memory_order_relaxed))
		prediction_forget(&history, exec);
}

void turnstile_after_fork(void)
{
	lock = (struct brief_lock){.state = 0};
	for (unsigned int i = 0; i < GPUS_MAX; i++) {
		if (gates[i].is_used)
			memset(&gates[i], 0, sizeof gates[i]);
	}
	memset(&reserve, 0, sizeof reserve);
	atomic_store(&gone_ns, 0);
	atomic_store(&unseen, 0);
	/* It is large: whoever was never held has not touched it. */
	if (atomic_exchange(&listens, false))
		memset(&history, 0, sizeof history);
	atomic_store(&is_open, false);
	atomic_store(&waiting, 0);
	own = (struct own){.launch = NULL};
}

/* --- our thread ------------------------------------------------------------------------------------------------------ */

/* All of it is short, and waits for the lock as long as it takes: nobody waits for our thread. */
static void lock_patiently(void)
{
	while (!brief_lock(&lock))
		clock_pause_us(1000);
}

/* Those that are held ask again. */
static void call_all(void)
{
	atomic_fetch_add(&news, 1);
	if (atomic_load(&waiting) > 0)
		futex_wake(&news, INT_MAX);
}

/* Each launch has a stamp from here on, and each node of a graph: no decision of before holds. */
void turnstile_begin(void)
{
	if (!atomic_exchange(&is_open, true)) {
		atomic_store(&is_blind, false);
		ends_begin();
		epoch_raise_masks();
	}
	if (!atomic_exchange(&listens, true))
		hook_want_more();
}

void turnstile_end(void)
{
	if (atomic_exchange(&is_open, false)) {
		epoch_raise();
		call_all();
		ends_end();
	}
}

bool turnstile_is_open(void)
{
	return atomic_load(&is_open);
}

bool turnstile_is_blind(void)
{
	return atomic_load(&is_blind);
}

void turnstile_follow(const struct turnstile_rules *wanted, uint64_t now)
{
	int64_t period_ns = (int64_t)(limits(wanted) ? wanted->period_ns : UNLIMITED_NS);
	int64_t run_ns = limits(wanted) ? (int64_t)wanted->run_ns : period_ns;

	lock_patiently();
	rules = *wanted;
	reserve_share(&reserve, wanted->budget);
	for (unsigned int i = 0; i < GPUS_MAX; i++) {
		if (gates[i].is_used && !rules.gives_way)
			gates[i].neighbours = nobody;
	}
	if (reserve.run_ns != run_ns || reserve.period_ns != period_ns || reserve.policy != rules.reserve)
		reserve_begin(&reserve, rules.reserve, run_ns, period_ns, now);
	brief_unlock(&lock);
	call_all();
}

/* NULL if this process has launched nothing there. */
static struct gate *gate_on(struct pci_address pci)
{
	struct gate *gate = NULL;

	for (unsigned int i = 0; i < GPUS_MAX && !gate; i++)
		gate = gates[i].is_used && pci_address_equal(gates[i].pci, pci) ? &gates[i] : NULL;
	return gate;
}

/* Its first launch there has to give way, too. */
static struct gate *gate_to_give_way(struct pci_address pci)
{
	const struct gpu *gpu = gpus_at(pci);
	struct gate *gate = gate_on(pci);

	if (!gate && gpu) {
		gate = gate_of(gpu);
		gate->pci = pci;
		gate->is_used = true;
	}
	return gate;
}

static bool is_news(const struct gate *gate, const struct neighbours *neighbours, bool is_aside)
{
	return gate->neighbours.has_higher != neighbours->has_higher ||
	       gate->neighbours.higher_wants != neighbours->higher_wants || gate->is_aside != is_aside;
}

void turnstile_give_way(const struct neighbours_on_gpu *seen, const struct stepping *stepping, uint64_t now)
{
	const struct holding_view view = {.neighbours = seen->neighbours};
	bool has_news = false;

	lock_patiently();
	struct gate *gate = gate_to_give_way(seen->pci);

	if (gate) {
		has_news = is_news(gate, &seen->neighbours, stepping->is_aside);
		gate->neighbours = seen->neighbours;
		gate->is_aside = stepping->is_aside;
		holding_see(&gate->holding, &view, now);
	}
	brief_unlock(&lock);
	if (has_news)
		call_all();
}

bool turnstile_is_ready(struct pci_address pci)
{
	lock_patiently();
	const struct gate *gate = gate_on(pci);
	bool is_ready = gate && gate->ready > 0;

	brief_unlock(&lock);
	return is_ready;
}

/* --- what has ended -------------------------------------------------------------------------------------------------- */

static uint64_t measure(const struct in_flight_launch *launch)
{
	const struct ends_launch of = {
		.ring = launch->stamps,
		.number = launch->record,
		.is_graph = launch->is_graph,
		.came = launch->came,
		.unseen = launch->unseen,
		.seen = launch->seen,
	};
	struct ends_time time = ends_measure(&of);

	/* What the processor saw is too long, but better than nothing. */
	if (time.is_known || !launch->predicted.is_known)
		prediction_learn(&history, &launch->key, launch->predicted, time.duration_ns);
	return time.used_ns;
}

/* What our thread found on all GPUs. */
struct found {
	unsigned int ended;     /* launches, */
	unsigned int ready;     /* that are held, but not for the quota */
	unsigned int in_flight;
};

/* Returns how many launches had ended. */
static unsigned int take_ended(struct gate *gate, struct found *found)
{
	struct in_flight_launch *taken[TAKEN_MAX];
	uint64_t used_ns[TAKEN_MAX], now = process_clock_ns();

	lock_patiently();
	put_right(gate);
	found->in_flight += gate->is_used ? in_flight_look(&gate->in_flight, now) : 0;
	found->ready += gate->ready;
	unsigned int count = in_flight_take(&gate->in_flight, taken, TAKEN_MAX);

	brief_unlock(&lock);
	found->ended += count;
	for (unsigned int i = 0; i < count; i++)
		used_ns[i] = taken[i]->stamps || taken[i]->is_graph ? measure(taken[i]) : 0;
	lock_patiently();
	for (unsigned int i = 0; i < count; i++)
		settle(gate, taken[i], used_ns[i], now);
	brief_unlock(&lock);
	return count;
}

/* What has taken long may be seen later: by a sixteenth of it. */
static uint64_t waiting_ns(uint64_t now)
{
	uint64_t part = (now - ended) / 16, least = part > WAITING_NS ? part : WAITING_NS;

	return least < WORKING_NS ? least : WORKING_NS;
}

static uint64_t when_to_look_again(const struct found *found, uint64_t now)
{
	uint64_t wake = UINT64_MAX;

	if (found->ended > 0)
		ended = now;
	if (found->in_flight > 0 && (found->ready > 0 || ends_want_close_looks()))
		wake = now + waiting_ns(now);
	else if (found->in_flight > 0 || found->ready > 0)
		wake = now + WORKING_NS;
	return wake;
}

uint64_t turnstile_look(uint64_t now)
{
	struct found found = {.ended = 0};

	for (unsigned int i = 0; i < GPUS_MAX; i++) {
		while (take_ended(&gates[i], &found) == TAKEN_MAX)
			continue;
	}
	if (found.ended > 0)
		call_all();
	return when_to_look_again(&found, now);
}

static uint64_t struck(const struct holding *holding)
{
	uint64_t sum = holding->struck_elsewhere;

	for (int i = 0; i < HOLDING_REASONS; i++)
		sum += holding->struck[i];
	return sum;
}

struct turnstile_use turnstile_use(void)
{
	struct turnstile_use use = {.used_ns = 0};

	lock_patiently();
	use.used_ns = reserve.used_ns;
	use.bounded = atomic_load(&unseen);
	for (unsigned int i = 0; i < GPUS_MAX; i++) {
		const struct holding *holding = &gates[i].holding;

		if (gates[i].is_used) {
			use.held += holding->held;
			use.held_ns += holding->held_ns;
			use.bounded += struck(holding);
		}
	}
	brief_unlock(&lock);
	return use;
}

const struct prediction_history *turnstile_history(void)
{
	return &history;
}
