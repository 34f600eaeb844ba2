/*
 * Launches that wait at the entry of the call (src/time/gate/hold.h), on a virtual clock: the bounds of each wait, and
 * the program's thread after a wait. The gate is real. The clock goes on in the pauses of a waiting launch alone.
 *
 * link: -Wl,--wrap=process_clock_ns -Wl,--wrap=clock_pause_us -Wl,--wrap=wakeup_ring
 * link: -Wl,--wrap=pthread_setcancelstate -Wl,--wrap=graphs_call_ended
 * link: -Wl,--wrap=graph_instances_move -Wl,--wrap=driver_has_graphs
 */
#include "../cases.h"
#include "noted.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/graph_instances.h"
#include "launch/graphs/graphs.h"
#include "launch/space/epoch.h"
#include "shim/shim.h"
#include "state/segment/owner.h"
#include "time/gate/gate.h"
#include "time/gate/gates.h"
#include "time/gate/window.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define BEGIN (1000 * MS)
#define LIMIT (3 * MS)
#define NEVER UINT64_MAX
#define SLACK 123456UL
#define OWN 0x0f0
#define ERRNO_OF_THE_PROGRAM 77

static struct segment segment;
static struct gate gate;
static struct topology topology;
static struct gpu gpu;
static struct frame frame;
static _Atomic uint64_t claims_number;
static uint64_t now, rests_at; /* the claim wants until then */
static uint64_t pauses, last_pause_us;
static unsigned int rings, waiting_at_ring, entering_at_count;
static bool forks; /* the next pause */

WRAP(uint64_t, process_clock_ns, void)
{
	return now;
}

/* As with a signal in the pause. */
WRAP(void, clock_pause_us, long us)
{
	assert_int_equal(prctl(PR_GET_TIMERSLACK), 1);
	pauses++;
	last_pause_us = (uint64_t)us;
	now += (uint64_t)us * US;
	assert_true(now < BEGIN + 10000 * MS); /* no wait is for ever */
	if (now >= rests_at)
		atomic_store(&claims_number, 0);
	if (forks)
		gate_after_fork();
	errno = EINTR;
}

WRAP(void, wakeup_ring, void)
{
	rings++;
	waiting_at_ring = atomic_load(&gate_state.waiting);
}

int __real_pthread_setcancelstate(int state, int *before);
WRAP(int, pthread_setcancelstate, int state, int *before)
{
	int result = __real_pthread_setcancelstate(state, before);

	errno = EINTR;
	return result;
}

FIXTURE(begin_all)
{
	static const struct segment_revision nothing;
	struct error error;

	assert_done(segment_create(&segment, &nothing, NULL, -1, -1, &error));
	epoch_use(&segment);
}

/* The kernels of a graph are counted. */
WRAP(void, graphs_call_ended, const struct call *call)
{
	entering_at_count = atomic_load(&gate_state.entering) + (call->frame != &frame);
}

WRAP(bool, driver_has_graphs, void)
{
	return true;
}

static uint64_t graph_is_at;

WRAP(enum graph_move, graph_instances_move, CUgraphExec exec, uint64_t where, bool may_move)
{
	bool is_there = where == graph_is_at;

	graph_is_at = may_move ? where : graph_is_at;
	return is_there ? GRAPH_IS_THERE : may_move ? GRAPH_MOVES : GRAPH_STAYS;
}

/* --- the program -------------------------------------------------------------------------------------------------- */

/* A program of a higher priority wants all TPCs of the program. */
FIXTURE(begin)
{
	topology = (struct topology){.tpc_count = 12, .sms_per_tpc = 2};
	for (uint16_t i = 0; i < topology.tpc_count; i++)
		topology.tpcs[i].mask_bit = i;
	gpu = (struct gpu){.topology = &topology, .has_masks = true, .present = {{0xfff, 0}}};
	now = BEGIN;
	rests_at = NEVER;
	pauses = rings = 0;
	forks = false;
	graph_is_at = 0;
	gate_after_fork();
	memset(&gate_state, 0, sizeof gate_state);
	memset(&frame, 0, sizeof frame);
	memset(&gate, 0, sizeof gate);
	gate.gpu = &gpu;
	gate.claims.count = 1;
	gate.claims.list[0] = (struct claim){.lender = 1, .number = &claims_number, .gives = {{OWN}}, .takes = {{OWN}},
	                                     .limit_ns = LIMIT, .borrowers = 1};
	gate.claims.all_own = (struct tpcset){{OWN}};
	gate.claims.own_is_known = true;
	atomic_store(&claims_number, 1);
	atomic_store(&gate.known, GATE_HAS_NO_PART);
	atomic_store(&gate_state.spent_at, UINT64_MAX);
	atomic_store(&gate_state.is_open, true);
	prctl(PR_SET_TIMERSLACK, SLACK);
	watch(&segment, now);
}

/* A program with a quota, and no program of a higher priority. */
static void have_quota(uint64_t spent_at)
{
	gate.claims.count = 0;
	gate.claims.has_part = true;
	gate.claims.part = gate.claims.all_own;
	atomic_store(&gate.known, 0);
	atomic_store(&gate_state.spent_at, spent_at);
	atomic_store(&gate_state.longest_hold, 700 * MS);
}

/* Returns how long the launch has waited. The driver refuses the launch, and nothing is in flight afterwards. */
static uint64_t launch_by(struct gate *of)
{
	struct {
		CUfunction function;
		unsigned int grid[3], block[3], dynamic_bytes;
		CUstream stream;
	} arguments = {.function = (CUfunction)&frame, .grid = {1, 1, 1}, .stream = (CUstream)0x1000};
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	const struct call call = {.id = CALL_LAUNCH, .context = (CUcontext)&gpu, .arguments = (void **)&arguments,
	                          .result = &result, .frame = &frame};
	uint64_t came = now;

	frame.gate = of;
	frame.gate_context = call.context;
	frame.gate_epoch = epoch_now();
	errno = ERRNO_OF_THE_PROGRAM;
	gate_call_begins(&call);
	assert_int_equal(errno, ERRNO_OF_THE_PROGRAM);
	gate_call_ended(&call);
	assert_int_equal(errno, ERRNO_OF_THE_PROGRAM);
	return now - came;
}

static uint64_t launch(void)
{
	return launch_by(&gate);
}

/* The call of a different thread has launched, and has not ended. */
static void have_launch_in_flight(void)
{
	atomic_fetch_add(&gate_state.entering, 1);
}

/* The wait was not longer, but for the last pause. */
static void assert_waits(uint64_t ns)
{
	uint64_t waited = launch();

	assert_in_range(waited, ns, ns + max_u64(20 * US, ns / 64));
}

static void assert_goes_at_once(void)
{
	uint64_t before = pauses;

	launch();
	assert_int_equal(pauses, before);
}

/* --- without own TPCs --------------------------------------------------------------------------------------------- */

/* Afterwards, launches go behind each other for a tenth of the time. */
TEST(an_episode)
{
	assert_waits(100 * MS);
	assert_int_equal(atomic_load(&gate_state.bounded), 1);
	now += 9900 * US;
	assert_goes_at_once();
	now += 100 * US;
	assert_waits(100 * MS);
	assert_int_equal(atomic_load(&gate_state.bounded), 2);
}

/* Sometimes two launches must be there at once for both to end. */
TEST(two_at_once_after_an_episode)
{
	assert_waits(100 * MS);
	have_launch_in_flight();
	assert_waits(2 * MS);
}

/* With nothing in flight, a launch of unknown length goes between two launches of the higher program, but not between
 * launches in a row. */
TEST(a_pause_of_the_other_program)
{
	rests_at = now + 100 * US;
	assert_waits(150 * US);
}

/* A long wait costs little: the pauses become longer. */
TEST(pauses)
{
	rests_at = now + 20 * US;
	assert_waits(70 * US);
	assert_each(pauses, 4, last_pause_us, 20);
	atomic_store(&claims_number, 1);
	rests_at = NEVER;
	assert_waits(100 * MS);
	assert_in_range(last_pause_us, 100 * 1000 / 64 - 100, 100 * 1000 / 64 + 1);
	assert_in_range(pauses, 200, 400);
}

/* --- the quota ---------------------------------------------------------------------------------------------------- */

/* Some of the quota is left, but too little for the launch: work in flight may wait for the launch. */
TEST(a_quota_without_room)
{
	have_quota(now + 10000 * MS);
	have_launch_in_flight();
	assert_waits(100 * MS);
}

TEST(a_spent_quota)
{
	have_quota(0);
	assert_waits(700 * MS);
	/* Work on another GPU may wait for the launch. */
	atomic_store(&gate_state.is_spread, true);
	assert_waits(100 * MS);
}

/* Until a moment in which nothing is in flight, as our thread or a launch sees. */
TEST(work_in_flight_that_may_wait)
{
	have_quota(0);
	have_launch_in_flight();
	atomic_store(&gate_state.together, 1);
	assert_goes_at_once();
	atomic_store(&gate_state.entering, 0);
	assert_waits(700 * MS);
	have_launch_in_flight();
	atomic_store(&gate_state.group_is_together, true);
	assert_goes_at_once();
}

/* --- after a wait ------------------------------------------------------------------------------------------------- */

/* As in a debugger. */
TEST(a_thread_that_is_stopped_with_the_lock)
{
	assert_true(gate_lock(&gate));
	assert_waits(100 * MS);
}

/* The handler of a signal forks in the wait, and returns in the child as well. */
TEST(a_child_goes_on_with_the_launch)
{
	struct gate *made = gates_make(&gpu);

	*made = gate;
	forks = true;
	launch_by(made);
	assert_int_equal(pauses, 1);
}

/* Our thread sees at once that a launch waits. */
TEST(our_thread_is_rung)
{
	assert_waits(100 * MS);
	assert_each(rings, 1, waiting_at_ring, 1, atomic_load(&gate_state.waiting), 0);
}

/* __wrap_clock_pause_us looks at the slack in the wait, and `launch` at errno. */
TEST(the_thread_is_as_before)
{
	assert_waits(100 * MS);
	assert_int_equal(prctl(PR_GET_TIMERSLACK), SLACK);
	assert_each(atomic_load(&gate_state.held), 1, atomic_load(&gate_state.held_ns), now - BEGIN);
}

static void assert_noted(enum segment_event_kind kind)
{
	uint64_t waited = launch();

	assert_each(read_noted(), waited > 0, noted[0].kind, kind, noted[0].end_ns, now,
	            noted[0].end_ns - noted[0].begin_ns, waited);
}

TEST(a_watcher_learns_of_each_wait)
{
	assert_noted(SEGMENT_WAITED_FOR_PRIORITY);
	have_quota(0);
	assert_noted(SEGMENT_WAITED_FOR_QUOTA);
	have_quota(UINT64_MAX);
	assert_goes_at_once();
	assert_int_equal(read_noted(), 0);
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* Returns whether the graph had more TPCs. A change of the TPCs takes a millisecond. */
static bool launch_graph(CUresult result)
{
	struct {
		CUgraphExec exec;
		CUstream stream;
	} arguments = {(CUgraphExec)&frame, (CUstream)0x1000};
	struct call call = {.id = CALL_GRAPH_LAUNCH, .context = (CUcontext)&gpu, .arguments = (void **)&arguments,
	                    .result = &result, .frame = &frame};

	frame.gate = &gate;
	frame.gate_context = call.context;
	frame.gate_epoch = epoch_now();
	atomic_store(&gate_listens, true);
	call.wanted_by = events_want_call(call.id);
	gate_call_begins(&call);
	bool has_more = frame.has_more;

	window_sweep(&gate);
	assert_true((gate.in_flight.wide > 0) == has_more);
	now += frame.moves_since != 0 ? MS : 0;
	events_call_ended(&call);
	return has_more;
}

/* Threads of the program always see work in flight. */
TEST(a_graph_is_counted_before_the_gate_forgets_the_launch)
{
	launch_graph(CUDA_SUCCESS);
	assert_each(entering_at_count, 1, atomic_load(&gate_state.entering), 0);
}

static struct claim *lend_to_graph(void)
{
	const struct launched_work work = {.what = &frame, .is_graph = true};
	struct length *length = lengths_find(&work);
	struct claim *claim = &gate.claims.list[0];

	lengths_note(length, atomic_load(&length->key), LENGTH_MORE, 100 * US);
	atomic_store(&gate.known, 0);
	gate.claims.has_part = true;
	gate.claims.part = gate.claims.all_own;
	claim->gives = claim->takes = (struct tpcset){{0xf00}};
	claim->is_unknown = claim->is_open = true;
	return claim;
}

/* A change to more TPCs comes after twenty times the cost of the last change. */
TEST(a_graph_changes_seldom)
{
	struct claim *claim = lend_to_graph();

	assert_true(launch_graph(CUDA_ERROR_INVALID_VALUE));
	claim->is_open = false;
	assert_false(launch_graph(CUDA_ERROR_INVALID_VALUE));
	claim->is_open = true;
	now += 20 * MS - 1;
	assert_false(launch_graph(CUDA_ERROR_INVALID_VALUE));
	now++;
	assert_true(launch_graph(CUDA_ERROR_INVALID_VALUE));
}

/* As while a thread with the lock is preempted. The nodes are in lent TPCs, since the last launch. */
TEST(a_graph_leaves_lent_tpcs_without_the_lock_as_well)
{
	lend_to_graph();
	assert_true(launch_graph(CUDA_ERROR_INVALID_VALUE));
	assert_true(graph_is_at != 0);
	atomic_store(&gate.is_locked, true);
	assert_false(launch_graph(CUDA_ERROR_INVALID_VALUE));
	assert_int_equal(graph_is_at, 0);
}

/* --- without the lock --------------------------------------------------------------------------------------------- */

static CUresult capture(CUstream stream, int *status)
{
	*status = !CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

/* No thread counts the end of a captured launch. */
TEST(a_captured_launch_does_not_enter)
{
	atomic_store(&gate.is_locked, true);
	driver.stream_is_capturing = capture;
	assert_goes_at_once();
	driver.stream_is_capturing = NULL;
	assert_int_equal(atomic_load(&gate_state.entering), 0);
}

RUN_TESTS_IN(begin_all, NULL, begin, NULL)
