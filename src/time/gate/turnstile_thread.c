#include "turnstile_parts.h"

#include "base/clock.h"
#include "base/futex.h"
#include "base/process_clock.h"
#include "driver/hook.h"
#include "launch/space/epoch.h"
#include "launch/space/stepping.h"

#include <limits.h>

#define MS UINT64_C(1000000)

/* How often is looked while somebody waits for the end of a launch; and while anything is in flight, or somebody waits for
 * others. */
#define WAITING_NS (MS / 10)
#define WORKING_NS MS

/* What a reserve has that limits nobody: what is used is counted. */
#define UNLIMITED_NS (100 * MS)

static uint64_t ended; /* when it was seen last that any launch had */

/* --- the lock and the bell ------------------------------------------------------------------------------------------- */

/* All of it is short, and waits for the lock as long as it takes: nobody waits for our thread. */
static void lock_patiently(void)
{
	while (!brief_lock(&turnstile.lock))
		clock_pause_us(1000);
}

/* Those that are held ask again. */
static void call_all(void)
{
	atomic_fetch_add(&turnstile.news, 1);
	if (atomic_load(&turnstile.waiting) > 0)
		futex_wake(&turnstile.news, INT_MAX);
}

/* Each launch has a stamp from here on, and each node of a graph: no decision of before holds. */
void turnstile_begin(void)
{
	if (!atomic_exchange(&turnstile.is_open, true)) {
		atomic_store(&turnstile.is_blind, false);
		ends_begin();
		epoch_raise_masks();
	}
	if (!atomic_exchange(&turnstile.listens, true))
		hook_want_more();
}

void turnstile_end(void)
{
	if (atomic_exchange(&turnstile.is_open, false)) {
		epoch_raise();
		call_all();
		ends_end();
	}
}

bool turnstile_is_open(void)
{
	return atomic_load(&turnstile.is_open);
}

bool turnstile_is_waited_for(void)
{
	return atomic_load(&turnstile.waiting) > 0;
}

bool turnstile_is_blind(void)
{
	return atomic_load(&turnstile.is_blind);
}

void turnstile_follow(const struct turnstile_rules *wanted, uint64_t now)
{
	int64_t period_ns = (int64_t)(turnstile_limits(wanted) ? wanted->period_ns : UNLIMITED_NS);
	int64_t run_ns = turnstile_limits(wanted) ? (int64_t)wanted->run_ns : period_ns;

	lock_patiently();
	turnstile.rules = *wanted;
	reserve_share(&turnstile.reserve, wanted->budget);
	for (unsigned int i = 0; i < turnstile.used_count && !wanted->gives_way; i++)
		turnstile.used[i]->rivals = rivals_none;
	if (turnstile.reserve.run_ns != run_ns || turnstile.reserve.period_ns != period_ns)
		reserve_begin(&turnstile.reserve, run_ns, period_ns, now);
	brief_unlock(&turnstile.lock);
	call_all();
}

/* NULL if this process has launched nothing there. */
static struct gate *gate_on(struct pci_address pci)
{
	struct gate *gate = NULL;

	for (unsigned int i = 0; i < turnstile.used_count && !gate; i++)
		gate = pci_address_equal(turnstile.used[i]->pci, pci) ? turnstile.used[i] : NULL;
	return gate;
}

/* Its first launch there has to give way, too. */
static struct gate *gate_to_give_way(struct pci_address pci)
{
	const struct gpu *gpu = gpus_at(pci);
	struct gate *gate = gate_on(pci);

	if (!gate && gpu) {
		gate = turnstile_gate_of(gpu);
		turnstile_use_gate(gate, pci);
	}
	return gate;
}

static bool is_news(const struct gate *gate, const struct rivals *rivals, bool is_aside)
{
	return gate->rivals.has_higher != rivals->has_higher ||
	       gate->rivals.higher_wants != rivals->higher_wants || gate->is_aside != is_aside;
}

void turnstile_give_way(const struct peers_on_gpu *seen, const struct stepping *stepping, uint64_t now)
{
	const struct holding_view view = {.rivals = seen->rivals};
	bool has_news = false;

	lock_patiently();
	struct gate *gate = gate_to_give_way(seen->pci);

	if (gate) {
		has_news = is_news(gate, &seen->rivals, stepping->is_aside);
		gate->rivals = seen->rivals;
		gate->is_aside = stepping->is_aside;
		holding_see(&gate->holding, &view, now);
	}
	brief_unlock(&turnstile.lock);
	if (has_news)
		call_all();
}

bool turnstile_is_ready(struct pci_address pci)
{
	lock_patiently();
	const struct gate *gate = gate_on(pci);
	bool is_ready = gate && gate->ready > 0;

	brief_unlock(&turnstile.lock);
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

	return ends_measure(&of).used_ns;
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
	struct in_flight_launch *taken[TURNSTILE_TAKEN];
	uint64_t used_ns[TURNSTILE_TAKEN], now;

	lock_patiently();
	now = process_clock_ns();
	turnstile_put_right(gate);
	found->in_flight += in_flight_look(&gate->in_flight, now);
	found->ready += gate->ready;
	unsigned int count = in_flight_take(&gate->in_flight, taken, TURNSTILE_TAKEN);

	brief_unlock(&turnstile.lock);
	found->ended += count;
	for (unsigned int i = 0; i < count; i++)
		used_ns[i] = taken[i]->stamps || taken[i]->is_graph ? measure(taken[i]) : 0;
	lock_patiently();
	now = process_clock_ns();
	for (unsigned int i = 0; i < count; i++)
		turnstile_settle(gate, taken[i], used_ns[i], now);
	brief_unlock(&turnstile.lock);
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

/* So many of them can then be looked at without the lock. */
static unsigned int count_used(void)
{
	lock_patiently();
	unsigned int count = turnstile.used_count;

	brief_unlock(&turnstile.lock);
	return count;
}

uint64_t turnstile_look(uint64_t now)
{
	unsigned int used = count_used();
	struct found found = {.ended = 0};

	for (unsigned int i = 0; i < used; i++) {
		while (take_ended(turnstile.used[i], &found) == TURNSTILE_TAKEN)
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
	use.used_ns = turnstile.reserve.used_ns;
	use.bounded = atomic_load(&turnstile.unseen);
	for (unsigned int i = 0; i < turnstile.used_count; i++) {
		const struct holding *holding = &turnstile.used[i]->holding;

		use.held += holding->held;
		use.held_ns += holding->held_ns;
		use.bounded += struck(holding);
	}
	brief_unlock(&turnstile.lock);
	return use;
}
