#include "keeper.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/gpus.h"
#include "driver/hook.h"
#include "driver/pushbuffer/queue.h"
#include "gate.h"
#include "gates.h"
#include "launch/queued.h"
#include "launch/space/bells.h"
#include "launch/space/epoch.h"
#include "launch/space/yielding.h"
#include "mps/reach.h"
#include "time/demand/given.h"
#include "time/demand/work.h"
#include "time/rules/host_bound.h"
#include "window.h"

#include <string.h>

#define MS UINT64_C(1000000)

/* Times between two looks, but for ACTIVE_NS. */
#define LOOK_NS (5 * MS)        /* at other processes, while the process is active */
#define ACTIVE_NS (20 * MS)     /* after the last work, the process is active for this time */
#define TURN_NS (250 * MS)      /* whether the process can borrow */
#define SERVER_NS (100 * MS)    /* at MPS */
#define QUOTA_LOOK_NS (MS / 10) /* at a quota */
#define WATCH_NS MS             /* at launches, while the process works */

/* While launches wait, our thread moves the window as often, unless the launches of the program do. */
#define MOVE_NS (MS / 4)

/* The word of a member of the group holds for this time. */
#define TOGETHER_NS (20 * MS)

/* A launch is counted within this time, unless the driver does other work first, as to load code. */
#define COUNTED_NS MS

#define PAUSE_US 10 /* until our thread tries the lock of a gate again */

static struct {
	const struct segment *segment;
	struct claims_rules rules;
	uint32_t lend_us;
	bool has_gate, has_server, is_too_long, is_weak;
	bool has_claims; /* a program has a higher claim, on a GPU */
	bool notes, cannot_note, had_notes; /* launches are noted; cannot be; were to be at the last look */
	bool has_quota;
	bool has_all; /* the own TPCs have no higher claim on any GPU, and there are some */
	bool is_launching; /* on the only GPU, often */
	uint64_t looked, launched; /* at the last look */
	struct host_bound host;
	struct work work;
	bool wants, is_active, is_known; /* work is in flight; or was of late; this is exact */
	uint64_t told; /* when the group was told of a launch in flight that may wait for further launches */
	uint64_t wanted_since;
	uint64_t others_seen, server_seen, turned; /* when; 0: never */
	struct segment_borrowed borrowed;
} keeper;

/* --- gates ------------------------------------------------------------------------------------------------------- */

/* Locks the gate of a GPU by the number in keeper.work. NULL without a gate, or if a second thread has the lock. */
static struct gate *take_gate(unsigned int number)
{
	const struct gpu *gpu = gpus_at(keeper.work.gpus[number].pci);
	struct gate *gate = gpu ? gates_of(gpu) : NULL;

	return gate && gate_lock_soon(gate, PAUSE_US) ? gate : NULL;
}

/* From here on, notes waiting launches, and the GPU tells the end of each launch. Or no more: a launch costs as much
 * as without us. */
static void note_launches(bool wanted)
{
	bool listens = wanted || (keeper.has_gate && atomic_load(&gate_state.graphs_have_moved));
	struct error error;

	if (listens)
		atomic_store(&gate_hears_waits, true);
	bool listened = atomic_exchange(&gate_listens, listens);

	if (listens && !listened)
		epoch_raise(); /* earlier decisions are for fills as well */
	if (wanted != keeper.notes && !(wanted && keeper.cannot_note)) {
		keeper.notes = queued_want(wanted, &error) && wanted;
		keeper.cannot_note = wanted && !keeper.notes;
	}
	if (listens != listened)
		hook_want_more();
}

/* The time of launches in TPCs of other processes since the last look, and the TPCs in use now; without `goes_on`, for
 * the last time with these claims. */
static void see_borrowed(struct gate *gate, bool goes_on)
{
	struct segment_borrowed *borrowed = &keeper.borrowed;
	bool is_watched = goes_on && segment_is_watched(keeper.segment);

	for (unsigned int i = 0; i < gate->claims.count; i++) {
		struct tpcset lent = tpcset_without(&gate->claims.list[i].gives, &gate->claims.all_own);
		uint64_t us = (uint64_t)max_i64(0, gate->lent_ns[i]) / 1000, tpc_us = tpcset_count(&lent) * us;
		uint64_t lender = gate->claims.list[i].lender;
		bool is_used = gate->in_flight.wide > 0 && (gate->opened >> i & 1);
		unsigned int at = 0, tpcs = is_watched && is_used ? tpcset_count(&lent) : 0;

		while (at < SEGMENT_LOANS && borrowed->loans[at].lender != 0 && borrowed->loans[at].lender != lender)
			at++;
		if (at < SEGMENT_LOANS && tpc_us > 0)
			borrowed->loans[at] = (struct segment_loan){lender, borrowed->loans[at].tpc_us + tpc_us};
		if (is_used)
			borrowed->tpcs = tpcset_or(&borrowed->tpcs, &lent);
		borrowed->tpc_us += tpc_us;
		gate->lent_ns[i] -= (int64_t)us * 1000; /* the rest counts next time */
		if (tpcs != gate->told[i])
			window_tell(gate, i,
			            (struct segment_event){SEGMENT_BORROWS, tpcs, .begin_ns = process_clock_ns()});
		gate->told[i] = tpcs;
	}
}

/* A borrower that would gain nothing is not listened to. Waits for a quota or a priority go on. */
static bool rests(void)
{
	return keeper.host.speed != HOST_IS_NOT_SLOW && keeper.is_known && keeper.has_all && !keeper.has_quota &&
	       !atomic_load(&gate_state.graphs_have_moved);
}

/* Likewise, without doubt. */
static bool is_slow(void)
{
	return keeper.host.speed == HOST_IS_SLOW && rests();
}

/* Launches wake programs that may use the own TPCs: borrowers of a lender, and programs of a lower priority. */
static void see_borrowers(uint32_t priority)
{
	struct bell bells[BELLS];
	unsigned int count = 0;

	for (unsigned int i = 0; i < keeper.work.gpu_count; i++) {
		const struct peer *peer;

		for (unsigned int at = 0; (peer = peers_next(keeper.work.gpus[i].pci, &at)) && count < BELLS;) {
			const struct board_claim *claim = &peer->is.claim;
			bool borrows = claim->is_borrower && keeper.lend_us > 0;

			if ((borrows || claim->priority < priority) && peer->view.segment)
				bells[count++] = (struct bell){counts_view_openings(&peer->view),
				                               counts_view_rings(&peer->view)};
		}
	}
	bells_set(bells, count);
}

/* False if the claims have changed, and a second thread changes launches now. */
static bool set_claims(struct gate *gate, const struct claims *made)
{
	bool stays = claims_are_equal(made, &gate->claims), can_be_set = stays || window_begin_anew(gate);

	if (can_be_set) {
		see_borrowed(gate, stays);
		if (!tpcset_equal(&made->all_own, &gate->claims.all_own))
			keeper.host = (struct host_bound){.looked = 0};
	}
	if (can_be_set && !stays) {
		memset(gate->lent_ns, 0, sizeof gate->lent_ns);
		gate->claims = *made;
		atomic_store(&gate->known, made->is_narrow ? GATE_IS_NARROW : made->has_part ? 0 : GATE_HAS_NO_PART);
	}
	return can_be_set;
}

/* Looks at other programs on the GPU. */
static void see_gpu(const struct gpu *gpu)
{
	static struct claims made; /* large */
	const struct tpcset none = {{0}};
	struct gate *gate = gates_make(gpu);

	claims_see(&made, gpu->pci, &keeper.rules);
	bool is_set = gate_lock_soon(gate, PAUSE_US);

	if (is_set) {
		is_set = set_claims(gate, &made);
		gate_unlock(gate);
	}
	keeper.has_claims |= gate->claims.count > 0;
	keeper.has_all = keeper.has_all && is_set && made.has_part && !made.is_narrow;
	if (is_set)
		yielding_set_part(gpu, made.is_narrow ? &made.part : &none);
	else
		keeper.others_seen = 0; /* the next look tries again */
}

/* Learns lengths, and moves the window of a gate with claims, as launches do. Returns the time to the next look. */
static uint64_t move_window(struct gate *gate)
{
	bool has_claims = gate->claims.count > 0;
	bool waits = has_claims && window_move(gate, (struct launch_end){.number = 0});

	if (!has_claims)
		window_sweep(gate);
	see_borrowed(gate, true);
	bool is_watched = (has_claims && !is_slow()) || gate->in_flight.added != gate->in_flight.gone;

	return waits && !keeper.is_launching ? MOVE_NS : is_watched || waits ? WATCH_NS : LOOK_NS;
}

/* Returns when to look again. */
static uint64_t move_windows(uint64_t now)
{
	uint64_t until = UINT64_MAX;

	for (unsigned int i = 0; i < keeper.work.gpu_count; i++) {
		struct gate *gate = take_gate(i);

		if (gate) {
			until = min_u64(until, now + move_window(gate));
			gate_unlock(gate);
		}
	}
	return until;
}

/* --- rules ------------------------------------------------------------------------------------------------------- */

/* A process that only lends is held nowhere, and the launches are not listened to. */
void keeper_follow(const struct segment *segment, const struct segment_revision *revision)
{
	keeper.segment = segment;
	keeper.lend_us = segment_lends_us(&revision->lending);
	keeper.has_gate = segment_time_holds_back(revision) || segment_borrows(&revision->lending);
	keeper.rules = (struct claims_rules){
		.priority = keeper.has_gate ? segment_rank_priority(revision->rank) : SEGMENT_PRIORITY_MAX,
		.borrows = segment_borrows(&revision->lending),
		.borrow = revision->lending.borrow,
	};
	keeper.others_seen = keeper.server_seen = 0;
	keeper.is_weak = false;
	if (!keeper.has_gate)
		atomic_store(&gate_state.is_open, false);
}

void keeper_end(void)
{
	atomic_store(&gate_state.is_open, false);
	note_launches(false);
	if (atomic_exchange(&gate_hears_host, false))
		hook_want_more();
	keeper.has_gate = keeper.has_server = keeper.had_notes = false;
	bells_set(NULL, 0);
	for (unsigned int i = 0; i < keeper.work.gpu_count; i++) {
		struct gate *gate = take_gate(i);

		if (gate) {
			see_borrowed(gate, false);
			gate_unlock(gate);
		}
	}
	keeper.borrowed.tpcs = (struct tpcset){{0}};
	if (keeper.segment)
		segment_set_borrowed(keeper.segment, &keeper.borrowed);
}

void keeper_after_fork(void)
{
	memset(&keeper, 0, sizeof keeper);
	bells_set(NULL, 0);
}

/* --- looking ----------------------------------------------------------------------------------------------------- */

/* Each launch that went before is still entering, or counted. */
static void see_work(uint64_t now)
{
	uint64_t together = atomic_load(&gate_state.together);
	bool is_launching = atomic_load(&gate_state.entering) > 0;

	work_look(&keeper.work, now);
	keeper.is_active = is_launching || atomic_load(&gate_state.waiting) > 0;
	keeper.wants = is_launching && now < atomic_load(&gate_state.began) + COUNTED_NS;
	keeper.is_known = keeper.work.is_counted;
	for (unsigned int i = 0; i < keeper.work.gpu_count; i++) {
		const struct demand *demand = &keeper.work.gpus[i].demand;

		keeper.wants = keeper.wants || demand->wants;
		keeper.is_active = keeper.is_active || demand_idle_ns(demand) < ACTIVE_NS;
		keeper.is_known = keeper.is_known && demand->is_known;
	}
	if (!is_launching && !keeper.wants)
		atomic_store(&gate_state.together_ended, together);
	keeper.wanted_since = keeper.wants ? keeper.wanted_since : now;
	atomic_store(&gate_state.is_spread, keeper.work.view.gpus_wanting > 1);
	atomic_store(&gate_state.has_gpus, keeper.work.gpu_count > 1);
}

/* Without the server, the process is no client, and can launch nothing; unless only the pipe cannot be seen. */
static void see_server(uint64_t now)
{
	if (now - keeper.server_seen >= SERVER_NS) {
		keeper.has_server = mps_is_in_reach();
		keeper.server_seen = now;
	}
}

static bool opens(void)
{
	return keeper.has_server && keeper.has_gate && !rests();
}

/* Woken soon after a look, our thread knows nothing new. */
static void see_launches(uint64_t now, uint64_t launched)
{
	uint64_t passed_ns = now - keeper.looked, launches = launched - keeper.launched;

	if (passed_ns >= MOVE_NS / 2) {
		keeper.is_launching = keeper.work.gpu_count == 1 && launches * MOVE_NS >= passed_ns;
		keeper.launched = launched;
		keeper.looked = now;
	}
}

/* How fast the program launches; and beside claims, whether the host is slower than the GPU: by exact numbers. */
static void see_host(uint64_t now)
{
	struct host_look look = {.is_blocked = atomic_load(&gate_state.blocked) > 0};

	for (unsigned int i = 0; i < keeper.work.gpu_count; i++) {
		look.launched += keeper.work.gpus[i].demand.launched;
		look.in_flight = max_u64(look.in_flight, keeper.work.gpus[i].demand.in_flight);
	}
	if (keeper.is_known && keeper.has_claims)
		host_bound_look(&keeper.host, now, &look, rests());
	see_launches(now, look.launched);
}

/* Launches that may wait for further launches: of the process, and of other members of the group. Members tell at each
 * look. */
static bool see_together(struct budget *budget, uint64_t now)
{
	uint64_t told = atomic_load(&budget->together);
	bool is_others = told != keeper.told && now < told + TOGETHER_NS;
	bool is_own = atomic_load(&gate_state.together) != atomic_load(&gate_state.together_ended);

	if (is_own) {
		keeper.told = now;
		atomic_store(&budget->together, now);
	}
	atomic_store(&gate_state.group_is_together, is_others);
	return is_own || is_others;
}

/* Work in flight goes on while launches wait. The work is charged all the time, from the moment when the first launch
 * went. The end of long work may be seen later, by a part of the length. */
static uint64_t see_quota(uint64_t now)
{
	const struct suspension none = {.is_on = false};
	struct quota *quota = &given_rules()->quota;
	uint64_t until, spent_at;

	quota_began(quota, atomic_load(&gate_state.began));
	quota_ask(quota, now, keeper.wants, &none, &until);
	keeper.is_weak |= see_together(quota->budget, now) && quota->is_spent;
	atomic_store(&gate_state.longest_hold, quota_longest_hold(quota, keeper.is_weak));
	spent_at = quota_spent_at(quota, now);
	keeper.has_quota = spent_at != UINT64_MAX;
	if (!opens())
		spent_at = UINT64_MAX;
	atomic_store(&gate_state.spent_at, spent_at);
	if (spent_at != UINT64_MAX && keeper.wants)
		until = min_u64(until, now + max_u64(QUOTA_LOOK_NS, (now - keeper.wanted_since) / 16));
	return until;
}

static struct board_claim own_claim(void)
{
	struct board_claim self = given_self();

	self.is_client = true;
	self.is_borrower = keeper.rules.borrows;
	self.lend_us = keeper.lend_us;
	return self;
}

static void see_others(uint64_t now, const struct board_claim *self)
{
	keeper.has_claims = false;
	keeper.has_all = true;
	keeper.cannot_note = false; /* the next attempt */
	keeper.others_seen = now;
	peers_look(now, &keeper.work, self);
	keeper.borrowed.tpcs = (struct tpcset){{0}};
	keeper.borrowed.overruns = atomic_load(&gate_state.overruns);
	for (unsigned int i = 0; i < keeper.work.gpu_count; i++) {
		const struct gpu *gpu = gpus_at(keeper.work.gpus[i].pci);

		keeper.rules.is_known = keeper.work.gpus[i].demand.is_known;
		if (gpu)
			see_gpu(gpu);
	}
	see_borrowers(self->priority);
	/* A quota needs the ends of launches alone. */
	queue_change_masks(keeper.has_claims);
	segment_set_borrowed(keeper.segment, &keeper.borrowed);
}

/* The gate is open only while launches have known ends: a wide launch with an unknown end would keep room in the window
 * until the process is idle. A launch that began while the gate was open has its end by the next look. */
static void open_gate(void)
{
	bool notes = (keeper.has_claims && !rests()) || atomic_load(&gate_state.spent_at) != UINT64_MAX;
	bool hears = keeper.has_claims && rests();

	note_launches(notes || keeper.had_notes);
	keeper.had_notes = notes;
	atomic_store(&gate_state.is_open, opens());
	if (atomic_exchange(&gate_hears_host, hears) != hears)
		hook_want_more();
}

/* Each turn sees whether every possible loan was for too short a time. */
static void turn(uint64_t now)
{
	if (now - keeper.turned < TURN_NS)
		return;
	bool is_too_long = atomic_exchange(&gate_state.is_too_long, false),
	     has_more = atomic_exchange(&gate_state.has_more, false);

	keeper.is_too_long = !has_more && (is_too_long || keeper.is_too_long);
	keeper.turned = now;
}

uint64_t keeper_look(uint64_t now, bool *is_idle)
{
	see_work(now);
	see_host(now);
	see_server(now);
	uint64_t until = see_quota(now);
	struct board_claim self = own_claim();

	if (now - keeper.others_seen >= LOOK_NS)
		see_others(now, &self);
	else if (pool_is_there())
		peers_share(now, &keeper.work, &self, keeper.has_claims);
	open_gate();
	turn(now);
	if (keeper.is_active)
		until = min_u64(until, move_windows(now));
	segment_set_time_used(keeper.segment, given_rules()->quota.present_ns / 1000,
	                      atomic_load(&gate_state.held_ns) / 1000, atomic_load(&gate_state.bounded));
	segment_set_time_held(keeper.segment, atomic_load(&gate_state.held));
	*is_idle = !keeper.is_active && (keeper.has_server || !keeper.has_gate);
	return keeper.is_active ? min_u64(until, now + LOOK_NS) : until;
}

enum segment_time_state keeper_state(void)
{
	enum segment_time_state state = keeper.is_too_long ? SEGMENT_TIME_TOO_LONG : SEGMENT_TIME_HELD;

	if (keeper.has_claims && is_slow())
		state = SEGMENT_TIME_HOST_BOUND;
	if (keeper.is_weak)
		state = SEGMENT_TIME_WEAK;
	if (!keeper.has_server)
		state = SEGMENT_TIME_MPS_GONE;
	else if (!board_has_room() || !pool_has_room())
		state = SEGMENT_TIME_NO_PLACE;
	else if (!keeper.is_known)
		state = keeper.lend_us > 0 ? SEGMENT_TIME_LENDS_NOTHING : SEGMENT_TIME_UNSEEN;
	return state;
}
