/*
 * How often our thread looks in a client of MPS (src/time/gate/keeper.h), and for how long the thread believes a look:
 * on a virtual clock, with work of the process as the test says. MPS is there, and the process is alone.
 *
 * link: -Wl,--wrap=process_clock_ns,--wrap=work_look,--wrap=peers_look,--wrap=mps_is_in_reach,--wrap=gpus_at
 * link: -Wl,--wrap=claims_see,--wrap=window_move,--wrap=queued_want,--wrap=hook_want_more,--wrap=peers_have_room
 * link: -Wl,--wrap=peers_next,--wrap=window_begin_anew
 */
#include "../cases.h"
#include "noted.h"

#include "driver/gpus.h"
#include "launch/space/bells.h"
#include "launch/queued.h"
#include "mps/reach.h"
#include "launch/space/epoch.h"
#include "state/segment/owner.h"
#include "time/demand/given.h"
#include "time/demand/peers.h"
#include "time/demand/work.h"
#include "time/gate/gate.h"
#include "time/gate/gates.h"
#include "time/gate/keeper.h"
#include "time/gate/window.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define NOW (100 * SECOND)
#define LENT 0xf

static struct segment segment;
static struct topology topology = {.tpc_count = 12};
static struct gpu gpu = {.topology = &topology};
static uint64_t now, idle_since;
static bool wants, launches_wait, has_claim, is_mps_there, are_noted;
static struct peer peer;
static bool has_peer;
static bool was_open; /* at the last change of `are_noted` */
static uint64_t launched, unended;
static struct tpcset own;
static bool cannot_note, cannot_begin;
static unsigned int asked; /* whether to note */
static unsigned int looks_at_mps, looks_at_others, gpus;

/* --- what is modelled --------------------------------------------------------------------------------------------- */

WRAP(uint64_t, process_clock_ns, void)
{
	return now;
}

WRAP(void, work_look, struct work *work, uint64_t at)
{
	idle_since = wants ? at : idle_since;
	*work = (struct work){.is_counted = true, .gpu_count = gpus, .view.gpus_wanting = wants};
	work->gpus[0].demand =
	        (struct demand){.is_known = true, .wants = wants && (launched == 0 || unended > 0), .looked = at,
	                        .idle_since = idle_since, .launched = launched, .in_flight = unended};
}

WRAP(struct rivals, peers_look, uint64_t at, const struct work *work, const struct board_claim *self)
{
	looks_at_others++;
	return rivals_none;
}

WRAP(const struct peer *, peers_next, struct pci_address pci, unsigned int *at)
{
	return has_peer && (*at)++ == 0 ? &peer : NULL;
}

WRAP(bool, peers_have_room, void)
{
	return true;
}

WRAP(bool, mps_is_in_reach, void)
{
	looks_at_mps++;
	return is_mps_there;
}

WRAP(const struct gpu *, gpus_at, struct pci_address pci)
{
	return &gpu;
}

/* A different claim at each look. */
WRAP(void, claims_see, struct claims *made, struct pci_address pci, const struct claims_rules *rules)
{
	static uint64_t lender;

	*made = (struct claims){.count = has_claim, .has_part = true, .all_own = own};
	made->list[0] = (struct claim){.lender = ++lender, .is_unknown = true, .limit_ns = MS, .borrowers = 1,
	                               .gives = {{LENT}}};
}

WRAP(bool, window_move, struct gate *gate, struct launch_end newest)
{
	window_sweep(gate);
	return launches_wait;
}

bool __real_window_begin_anew(struct gate *);
WRAP(bool, window_begin_anew, struct gate *gate)
{
	return !cannot_begin && __real_window_begin_anew(gate);
}

WRAP(bool, queued_want, bool wanted, struct error *error)
{
	asked++;
	are_noted = wanted;
	was_open = atomic_load(&gate_state.is_open);
	return !cannot_note;
}

WRAP(void, hook_want_more, void)
{
}

FIXTURE(begin_all)
{
	static const struct segment_revision nothing;
	struct error error;

	assert_done(segment_create(&segment, &nothing, NULL, -1, -1, &error));
	epoch_use(&segment);
}

static void give(struct segment_revision revision)
{
	given_begin();
	given_follow(&segment, &revision, now);
	keeper_follow(&segment, &revision);
}

FIXTURE(begin)
{
	now = NOW;
	idle_since = launched = unended = 0;
	own = (struct tpcset){{0}};
	wants = launches_wait = has_claim = cannot_note = has_peer = false;
	is_mps_there = true;
	gpus = 1;
	keeper_after_fork();
	atomic_store(&gate_state.began, 0);
	give((struct segment_revision){.lending.borrows = SEGMENT_BORROW_SET});
	looks_at_mps = looks_at_others = 0;
}

/* Returns how long our thread then sleeps at most. */
static uint64_t look_at(uint64_t at)
{
	bool is_idle;

	now = at;
	uint64_t until = keeper_look(at, &is_idle);

	return is_idle ? UINT64_MAX : until - at;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

TEST(looks)
{
	wants = true;
	for (uint64_t at = NOW; at < NOW + SECOND; at += MS)
		assert_in_range(look_at(at), 1, 5 * MS);
	assert_each(looks_at_mps, 10, looks_at_others, 200);
}

TEST(until_it_rests)
{
	wants = true;
	assert_int_equal(look_at(NOW), 5 * MS);
	wants = false;
	assert_each(look_at(NOW + 20 * MS - 1), 5 * MS, look_at(NOW + 20 * MS), UINT64_MAX);
}

/* Launches of the process that wait in queues, and that are in flight. */
TEST(beside_a_claim)
{
	wants = has_claim = launches_wait = true;
	assert_int_equal(look_at(NOW), 250 * US);
	launched += 3;
	assert_int_equal(look_at(NOW + MS), 250 * US);
	launched += 4; /* each launch looks as well */
	assert_int_equal(look_at(NOW + 2 * MS), MS);
	gpus = 2; /* all launch on the first */
	launched += 7;
	assert_int_equal(look_at(NOW + 5 * MS / 2), 250 * US);
	launches_wait = false;
	assert_int_equal(look_at(NOW + 3 * MS), MS);
}

static void assert_borrows(unsigned int tpcs, uint64_t at)
{
	look_at(at);
	assert_each(read_noted(), 1, noted[0].kind, SEGMENT_BORROWS, noted[0].tpcs, tpcs, noted[0].begin_ns, at);
}

TEST(a_watcher_learns_what_is_borrowed)
{
	const struct launch_end ended = {.number = 0};

	wants = has_claim = true;
	look_at(NOW);
	watch(&segment, NOW);
	struct in_flight *in_flight = &gates_of(&gpu)->in_flight;
	uint64_t ticket = in_flight_add(in_flight, 1, MS, in_flight_called);

	gates_of(&gpu)->opened = 1;
	assert_borrows(4, NOW + MS);
	look_at(NOW + 2 * MS);
	assert_int_equal(read_noted(), 0);
	in_flight_tell(in_flight, ticket, ended);
	assert_borrows(0, NOW + 3 * MS);
	ticket = in_flight_add(in_flight, 1, MS, in_flight_called);
	assert_borrows(4, NOW + 4 * MS);
	keeper_end();
	assert_each(read_noted(), 1, noted[0].tpcs, 0);
	in_flight_tell(in_flight, ticket, ended);
}

/* A second thread changes launches of a different GPU. */
TEST(claims_wait_for_a_walk)
{
	struct gate *gate = gates_of(&gpu);

	wants = has_claim = true;
	look_at(NOW);
	uint64_t lender = gate->claims.list[0].lender;

	cannot_begin = true;
	look_at(NOW + 5 * MS);
	assert_int_equal(gate->claims.list[0].lender, lender);
	cannot_begin = false;
	look_at(NOW + 6 * MS);
	assert_true(gate->claims.list[0].lender > lender);
	lender = gate->claims.list[0].lender;
	look_at(NOW + 7 * MS);
	assert_int_equal(gate->claims.list[0].lender, lender);
}

/* --- with a quota ------------------------------------------------------------------------------------------------- */

#define QUOTA {.quota = {.run_us = 9000000, .period_us = 10000000}}

TEST(work_with_a_quota)
{
	give((struct segment_revision)QUOTA);
	look_at(NOW);
	wants = true;
	assert_int_equal(look_at(NOW + MS), 100 * US);
}

/* A launch that went, and is not counted yet. */
TEST(a_launch_is_counted_soon)
{
	give((struct segment_revision)QUOTA);
	look_at(NOW);
	atomic_store(&gate_state.began, NOW);
	atomic_fetch_add(&gate_state.entering, 1);
	assert_int_equal(look_at(NOW + MS - 1), 100 * US);
	assert_true(look_at(NOW + MS) > MS);
	atomic_fetch_sub(&gate_state.entering, 1);
}

/* The word of a member of the group holds for a moment. */
TEST(members_that_wait_for_each_other)
{
	give((struct segment_revision)QUOTA);
	atomic_store(&given_rules()->quota.budget->together, NOW);
	look_at(NOW + 20 * MS - 1);
	assert_true(atomic_load(&gate_state.group_is_together));
	look_at(NOW + 20 * MS);
	assert_false(atomic_load(&gate_state.group_is_together));
}

/* --- the state ---------------------------------------------------------------------------------------------------- */

TEST(too_long_for_a_quarter_of_a_second)
{
	look_at(NOW);
	atomic_store(&gate_state.is_too_long, true);
	look_at(NOW + 250 * MS - 1);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HELD);
	look_at(NOW + 250 * MS);
	assert_int_equal(keeper_state(), SEGMENT_TIME_TOO_LONG);
	atomic_store(&gate_state.has_more, true);
	look_at(NOW + 500 * MS);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HELD);
}

/* For a second. */
static void launch_in_row(uint64_t from, uint64_t launches, uint64_t least)
{
	for (uint64_t i = 0; i * MS <= SECOND; i++) {
		launched += launches;
		unended = least + i % 4 / 2 * 3;
		look_at(from + i * MS);
	}
}

TEST(a_host_bound_borrower_rests)
{
	wants = has_claim = true;
	launch_in_row(NOW, 100, 0);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HOST_BOUND);
	assert_false(atomic_load(&gate_state.is_open));
	give((struct segment_revision){.lending.borrows = SEGMENT_BORROW_SET}); /* as when a watcher begins to look */
	look_at(NOW + SECOND + 2 * MS);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HOST_BOUND);
	launch_in_row(NOW + SECOND + 3 * MS, 50, 900); /* the GPU is the slower one now */
	assert_int_equal(keeper_state(), SEGMENT_TIME_HELD);
	assert_true(atomic_load(&gate_state.is_open));
}

TEST(a_host_in_doubt)
{
	wants = has_claim = true;
	for (now = NOW; (atomic_load(&gate_state.is_open) || now == NOW) && now < NOW + SECOND;) {
		launched += 100;
		look_at(now + MS);
	}
	assert_false(atomic_load(&gate_state.is_open));
	launched += 100;
	assert_int_equal(look_at(now + MS), MS);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HELD);
}

TEST(a_host_bound_program_without_lenders)
{
	wants = true;
	launch_in_row(NOW, 100, 0);
	has_claim = true;
	look_at(NOW + SECOND + 5 * MS);
	assert_true(atomic_load(&gate_state.is_open));
	launch_in_row(NOW + 2 * SECOND, 100, 0);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HOST_BOUND);
	has_claim = false;
	look_at(NOW + 4 * SECOND);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HELD);
}

/* With fewer TPCs, the host may wait. */
TEST(a_slow_host_and_a_new_part)
{
	wants = has_claim = true;
	launch_in_row(NOW, 100, 0);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HOST_BOUND);
	own = (struct tpcset){{0xf0}};
	look_at(NOW + SECOND + 5 * MS);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HELD);
	assert_true(atomic_load(&gate_state.is_open));
}

TEST(a_slow_program_is_looked_at_seldom)
{
	wants = has_claim = true;
	launch_in_row(NOW, 100, 0);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HOST_BOUND);
	assert_int_equal(look_at(NOW + SECOND + 5 * MS), 5 * MS);
	launch_in_row(NOW + 2 * SECOND, 50, 900);
	assert_int_equal(look_at(NOW + 3 * SECOND + 5 * MS), MS);
}

/* A call that waits for the GPU. */
TEST(a_thread_of_the_program_waits)
{
	struct frame frame = {.recent.context = (CUcontext)&gpu}, other = {.nested = 0};
	const struct call call = {.id = CALL_EVENT_SYNCHRONIZE, .frame = &frame};
	const struct call no_launcher = {.id = CALL_EVENT_SYNCHRONIZE, .frame = &other};

	wants = has_claim = true;
	launch_in_row(NOW, 100, 0);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HOST_BOUND);
	assert_true(gate_wants_call(CALL_EVENT_SYNCHRONIZE));
	gate_call_begins(&no_launcher);
	launch_in_row(NOW + 2 * SECOND, 100, 0);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HOST_BOUND);
	gate_call_begins(&call);
	gate_call_begins(&call); /* the first was left by a jump */
	launch_in_row(NOW + 4 * SECOND, 90, 0);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HELD);
	assert_false(gate_wants_call(CALL_EVENT_SYNCHRONIZE)); /* but for the end of the call */
	gate_call_ended(&call);
	gate_call_ended(&no_launcher);
	assert_int_equal(atomic_load(&gate_state.blocked), 0);
}

/* No launch is wide without a known end. */
TEST(launches_have_ends_while_the_gate_is_open)
{
	atomic_store(&gate_state.is_open, false);
	wants = has_claim = true;
	unended = 900;
	look_at(NOW);
	assert_true(are_noted);
	assert_false(was_open);
	assert_true(atomic_load(&gate_state.is_open));
	unended = 0;
	for (now = NOW; atomic_load(&gate_state.is_open);) {
		launched += 100;
		look_at(now + MS);
	}
	assert_true(are_noted);
	look_at(now + MS);
	assert_false(are_noted);
	assert_false(was_open);
}

TEST(launches_have_ends_until_the_look_after_the_last_lender)
{
	wants = has_claim = true;
	unended = 900;
	look_at(NOW);
	has_claim = false;
	look_at(NOW + 5 * MS);
	assert_true(are_noted);
	look_at(NOW + 6 * MS);
	assert_false(are_noted);
}

TEST(where_launches_cannot_be_noted)
{
	cannot_note = wants = has_claim = launches_wait = true;
	unended = 900;
	asked = 0;
	for (uint64_t at = NOW; at < NOW + SECOND;)
		at += look_at(at);
	assert_in_range(asked, 100, 210);
}

/* A launch behind the wait may come after the rest. */
TEST(waits_are_heard_in_a_rest)
{
	wants = has_claim = true;
	launch_in_row(NOW, 100, 0);
	assert_false(gate_wants_call(CALL_LAUNCH_EX));
	assert_true(gate_wants_call(CALL_WAIT_EVENT));
}

/* A graph in lent TPCs would stay there. */
TEST(moved_graphs_go_on)
{
	wants = has_claim = true;
	atomic_store(&gate_state.graphs_have_moved, true);
	launch_in_row(NOW, 100, 0);
	assert_int_equal(keeper_state(), SEGMENT_TIME_HELD);
	has_claim = false;
	look_at(NOW + 2 * SECOND);
	look_at(NOW + 2 * SECOND + MS);
	assert_true(atomic_load(&gate_listens));
	atomic_store(&gate_state.graphs_have_moved, false);
	look_at(NOW + 3 * SECOND);
	look_at(NOW + 3 * SECOND + MS);
	assert_false(atomic_load(&gate_listens));
}

TEST(a_quota_holds_again_when_mps_is_back)
{
	give((struct segment_revision){.quota = {.run_us = 9000000, .period_us = 10000000},
	                               .lending.borrows = SEGMENT_BORROW_SET});
	wants = has_claim = true;
	launch_in_row(NOW, 100, 0);
	assert_true(atomic_load(&gate_state.is_open));
	is_mps_there = false;
	launch_in_row(NOW + SECOND, 100, 0);
	assert_false(atomic_load(&gate_state.is_open));
	is_mps_there = true;
	launch_in_row(NOW + 2 * SECOND, 100, 0);
	assert_true(atomic_load(&gate_state.is_open));
}

static void assert_has_bell(struct segment_revision revision, bool has)
{
	give(revision);
	look_at(now + 5 * MS);
	assert_int_equal(bells_are_there(), has);
}

static struct segment_revision with_priority(unsigned int priority)
{
	return (struct segment_revision){.rank = {.priority = segment_rank_of_priority(priority)}};
}

/* Launches wake borrowers of a lender, and programs of a lower priority. */
TEST(bells)
{
	const struct segment_revision lends = {.lending.lend_us = 2000},
	                              borrows = {.lending.borrows = SEGMENT_BORROW_SET};

	wants = has_peer = true;
	peer = (struct peer){.view.segment = segment.memory, .is.claim = {.is_client = true, .priority = 50}};
	assert_has_bell(lends, false);
	assert_has_bell(with_priority(51), true);
	assert_has_bell(with_priority(50), false);
	peer.is.claim.is_borrower = true;
	assert_has_bell(lends, true);
	assert_has_bell(borrows, false);
	assert_has_bell(lends, true);
	peer.view.segment = NULL;
	assert_has_bell(lends, false);
	peer.view.segment = segment.memory;
	assert_has_bell(lends, true);
	keeper_end();
	assert_false(bells_are_there());
	assert_has_bell(lends, true);
	keeper_after_fork();
	assert_false(bells_are_there());
}

RUN_TESTS_IN(begin_all, NULL, begin, NULL)
