/*
 * A client of MPS and another one that has a higher claim to some TPCs, by its priority or since it lends them: where launches run
 * while that one wants them, and while it pauses. Launches that can neither leave them nor end in time run where they would run
 * otherwise.
 *
 * The other one is a process that says on the board what the test wants it to, and runs nothing; sometimes, it is a real program.
 *
 * gpus: h200-x2 blackwell
 * link: libsmctrl.so.0
 */
#include "../alone.h"
#include "../cases.h"
#include "../peer.h"
#include "base/clock.h"
#include "base/futex.h"
#include "gpu/qmd.h"
#include "libsmctrl.h"
#include "state/board/board.h"
#include "state/segment/lease.h"
#include "support/client.h"
#include "support/graph.h"
#include "support/green.h"
#include "support/subscriber.h"
#include "support/timed.h"

#define HIGH 80
#define LOW 20

#define LIMIT_US 100000 /* few launches of these tests take as long, also where a busy machine sees their ends late */

/* --- the higher one ------------------------------------------------------------------------------------------------- */

static struct {
	atomic_bool speaks;
	_Atomic uint64_t wanted; /* TPCs 0 … 63 that it wants to run on; none: it does not want to */
	_Atomic uint64_t lent;   /* or TPCs that it has; and lends, where it is no higher one; */
	atomic_uint lend_us;     /* for so long */
	atomic_bool is_in_flight;
	atomic_bool has_gap;     /* it does not know when it is idle */
	atomic_uint works;       /* the real one: */
	atomic_bool is_in_long;
	atomic_bool rests;       /* another one is there */
	atomic_uint woken;       /* how often the borrower's thread was woken */
	struct pci_address pci;
} *shared;

/* How it does: in short kernels, or in one that ends long after what the test does next. */
enum {
	SHORT = 1,
	LONG
};

static pid_t higher;

/* It claims some TPC always, and one that it claims anew is kept for it for a while: this one is in no partition of a test's. */
#define NOT_USED (UINT64_C(1) << 63)

/* Seldom, as a program does: who reads a claim while it is written may leave it out. It never wants what it only claims next. */
static void speak(struct peer_process *peer, bool *is_in_flight)
{
	uint64_t wanted = atomic_load(&shared->wanted), lent = atomic_load(&shared->lent);
	const struct board_claim said = peer->claim;

	if (wanted == 0 && *is_in_flight)
		peer_end(peer);
	peer->claim.tpcs = (struct tpcset){{lent != 0 ? lent : wanted != 0 ? wanted : NOT_USED}};
	peer->claim.lend_us = atomic_load(&shared->lend_us);
	peer->claim.priority = lent != 0 ? SEGMENT_PRIORITY_USUAL : HIGH;
	if (atomic_exchange(&shared->has_gap, false))
		counts_note_gap_everywhere(&peer->segment, COUNTS_SLOT_USED);
	if (said.written == 0 || !tpcset_equal(&said.tpcs, &peer->claim.tpcs) || said.lend_us != peer->claim.lend_us ||
	    said.priority != peer->claim.priority)
		peer_claim(peer);
	if (wanted != 0 && !*is_in_flight)
		peer_launch(peer);
	*is_in_flight = wanted != 0;
	atomic_store(&shared->is_in_flight, *is_in_flight);
}

static _Noreturn void be_higher(void)
{
	struct peer_process peer;
	bool is_in_flight = false;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!atomic_load(&shared->speaks))
		timed_sleep_ms(1);
	peer_begin(&peer, shared->pci);
	peer.claim.is_client = true;
	for (;;) {
		speak(&peer, &is_in_flight);
		timed_sleep_ms(1);
	}
}

/* One that never wants to run. */
static _Noreturn void rest(uint32_t priority, bool borrows)
{
	struct peer_process peer;

	peer_begin(&peer, shared->pci);
	peer.claim.is_client = true;
	peer.claim.priority = priority;
	peer.claim.is_borrower = borrows;
	if (borrows)
		peer.claim.tpcs = (struct tpcset){{NOT_USED}};
	peer_claim(&peer);
	atomic_store(&shared->rests, true);
	for (;;)
		pause();
}

static void be_another_higher_at_rest(void)
{
	rest(HIGH, false);
}

static void be_another_borrower_at_rest(void)
{
	rest(SEGMENT_PRIORITY_USUAL, true);
}

#define ASLEEP_NS UINT64_C(100000000)

/* A borrower with a thread at rest; launches become wide again and again. A launch may come before the sleep. */
static _Noreturn void be_another_borrower_that_sleeps(void)
{
	struct peer_process peer;

	peer_begin(&peer, shared->pci);
	peer.claim.is_client = peer.claim.is_borrower = true;
	peer.claim.tpcs = (struct tpcset){{NOT_USED}};
	peer_claim(&peer);
	for (;;) {
		_Atomic uint32_t *rings = segment_rings(&peer.segment);

		uint64_t end = process_clock_ns() + ASLEEP_NS;

		segment_count_opening(&peer.segment);
		futex_wait_until(rings, atomic_load(rings), end);
		if (process_clock_ns() < end)
			atomic_fetch_add(&shared->woken, 1);
	}
}

static int set_up(void **state)
{
	if (client_set_up(state) < 0)
		return -1;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	higher = fork();
	if (higher == 0)
		be_higher();
	return 0;
}

static int tear_down(void **state)
{
	kill(higher, SIGKILL);
	waitpid(higher, NULL, 0);
	munmap(shared, sizeof *shared);
	return client_tear_down(state);
}

static void want(struct tpcset set)
{
	atomic_store(&shared->wanted, set.words[0]);
}

static void want_nothing(void)
{
	atomic_store(&shared->wanted, 0);
}

/* --- the lower one, which is the test's child ----------------------------------------------------------------------- */

static void open_client(void (*open)(void))
{
	gpu_load_driver();
	open();
	shared->pci = gpu.topology->pci;
}

static void be_lower(void (*open)(void))
{
	open_client(open);
	timed_give_to_client(&(struct segment_revision){.rank = {.priority = segment_rank_of_priority(LOW)}});
	atomic_store(&shared->lend_us, LIMIT_US);
	atomic_store(&shared->speaks, true);
}

static void open_for_graphs(void)
{
	timed_open_gpu();
	for (unsigned int i = 0; i < NODES; i++)
		outputs[i] = gpu_new_output(&gpu);
}

static void have(struct tpcset set)
{
	gpu_set_partition(&gpu, set);
}

/* Until kernels run in all of the set, and nowhere else, twice in a row. Slowly: a program that launches all the time
 * would rest, as the host is slower than the GPU. */
static void assert_comes_to_run_in(struct tpcset set)
{
	struct tpcset former = gpu_where(&gpu, NULL), ran = gpu_where(&gpu, NULL);

	timed_until (gpu_ran_in(former, set) && gpu_ran_in(ran, set)) {
		timed_sleep_ms(1);
		former = ran;
		ran = gpu_where(&gpu, NULL);
	}
}

/* It has TPCs 0 to 7, and the higher one wants half of them. */
static void step_aside(void)
{
	be_lower(timed_open_gpu);
	have(gpu_range(0, 7));
	want(gpu_range(4, 11));
	assert_comes_to_run_in(gpu_range(0, 3));
}

/* Nothing ran where it may not, and no wish of the program's own was overruled by its partition. */
static void assert_nothing_is_said(void)
{
	struct segment_counters counters = gpu_counters();

	for (int which = 0; which < SEGMENT_REASON_COUNT; which++) {
		if (counters.reasons[which] != 0)
			fail_msg("%s", segment_reason_text((enum segment_reason)which));
	}
}

/* --- plain launches ------------------------------------------------------------------------------------------------- */

TIMED(aside_and_back)
{
	struct segment_revision revision;
	uint64_t number;

	be_lower(timed_open_gpu);
	have(gpu_range(0, 7));
	assert_comes_to_run_in(gpu_range(0, 7));
	want(gpu_range(4, 11));
	assert_comes_to_run_in(gpu_range(0, 3));
	/* Its partition is the same. */
	struct segment segment = gpu_own_segment();

	assert_true(segment_read(&segment, &revision, &number));
	segment_close(&segment);
	gpu_assert_ran(revision_find_partition(&revision, gpu.topology->pci)->set, gpu_range(0, 7));
	want(gpu_range(0, 0));
	assert_comes_to_run_in(gpu_range(1, 7));
	want_nothing();
	assert_comes_to_run_in(gpu_range(0, 7));
	/* Who shares no TPC with it is not in its way. */
	want(gpu_range(8, 20));
	timed_sleep_ms(50);
	gpu_assert_inside(gpu_range(0, 7));
	assert_nothing_is_said();
}

/* A program that fills TPCs 4 to 11 for some 2 s, once the test says so. */
static void be_filler(void)
{
	uint64_t cycles = UINT64_C(4000000000);
	void *parameters[] = {&gpu.output, &cycles};

	gpu_load_driver();
	timed_open_gpu();
	unsigned int blocks = 2 * 8 * gpu.topology->sms_per_tpc;

	have(gpu_range(4, 11));
	timed_wait_until(atomic_load(&shared->works) == LONG);
	gpu_check(cuLaunchKernel(gpu.where, blocks, 1, 1, GPU_THREADS, 1, 1, 0, NULL, parameters, NULL));
	atomic_store(&shared->is_in_long, true);
	gpu_check(cuCtxSynchronize());
	atomic_store(&shared->is_in_long, false);
}

/* Which TPCs are left: launches in the ones that another program fills would end after that program's kernel. */
TIMED(beside_one_that_fills)
{
	struct child filler = child_start(be_filler);

	step_aside();
	atomic_store(&shared->works, LONG);
	timed_wait_until(atomic_load(&shared->is_in_long));
	for (int i = 0; i < 20; i++)
		gpu_assert_inside(gpu_range(0, 3));
	assert_true(atomic_load(&shared->is_in_long));
	struct child_end end = child_wait(&filler);

	child_assert_passed(&end);
}

#define BLOCKS 31

static void launch_blocks(unsigned int blocks, CUstream stream)
{
	uint64_t cycles = 0;
	void *parameters[] = {&gpu.output, &cycles};

	gpu_check(cuLaunchKernel(gpu.where, blocks, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
}

/* A fill is a kernel in no call that launches: it is decided about as such, and the next launch not as it was. */
TIMED(behind_a_fill)
{
	CUdeviceptr memory;

	step_aside();
	gpu_check(cuMemAlloc_v2(&memory, 1 << 20));
	for (int i = 0; i < 3; i++) {
		launch_blocks(BLOCKS, NULL);
		have(gpu_range(0, 7));
		gpu_check(cuMemsetD32_v2(memory, 1, 1 << 18));
		launch_blocks(BLOCKS, NULL);
		gpu_check(cuCtxSynchronize());
		assert_true(gpu_ran_inside(gpu_read_tpcs(&gpu, gpu.output, BLOCKS), gpu_range(0, 3)));
	}
	assert_nothing_is_said();
}

/* Until launches have been held for so much longer. */
static void assert_comes_to_be_held(void (*launch)(void))
{
	uint64_t held = timed_look().aside_us;

	timed_until (timed_look().aside_us >= held + 50000)
		launch();
}

static void launch_alone(void)
{
	gpu_run(&gpu);
}

/* Two of a higher priority have all of its TPCs, and only one of them works: they are not its own then. */
TIMED(one_of_two_rests)
{
	be_lower(timed_open_gpu);
	have(gpu_range(4, 7));
	assert_comes_to_run_in(gpu_range(4, 7));
	struct child another = child_start(be_another_higher_at_rest);

	timed_until (atomic_load(&shared->rests))
		;
	want(gpu_range(4, 11));
	assert_comes_to_be_held(launch_alone);
	want_nothing();
	assert_comes_to_run_in(gpu_range(4, 7));
	kill(another.pid, SIGKILL);
	child_wait(&another);
}

static bool is_held_in_a_while(void (*launch)(void))
{
	double end = timed_now_s() + 0.3;
	uint64_t held = timed_look().aside_us;

	while (timed_now_s() < end)
		launch();
	timed_sleep_ms(50);
	return timed_look().aside_us != held;
}

/* Our thread says each time that it looks: so of a hold before this, perhaps only now. */
static void assert_is_held_no_more(void (*launch)(void))
{
	timed_until (!is_held_in_a_while(launch))
		;
}

/* --- blocks that must run at once ----------------------------------------------------------------------------------- */

/* As many as fit on so many TPCs. */
static unsigned int room_on(unsigned int tpcs)
{
	return gpu_blocks_per_sm(&gpu) * tpcs * gpu.topology->sms_per_tpc;
}

static struct tpcset run_cooperative(unsigned int tpcs)
{
	gpu_check(gpu_launch_cooperative(&gpu, room_on(tpcs)));
	gpu_check(cuCtxSynchronize());
	return gpu_read_tpcs(&gpu, gpu.output, room_on(tpcs));
}

static void assert_cooperative_runs_in(unsigned int tpcs, struct tpcset set)
{
	gpu_assert_ran(run_cooperative(tpcs), set);
}

static void run_in_half(void)
{
	gpu_assert_inside(gpu_range(0, 3));
	assert_cooperative_runs_in(4, gpu_range(0, 3));
}

static void run_cooperatively_in_all(void)
{
	assert_cooperative_runs_in(8, gpu_range(0, 7));
}

static void run_cooperatively_in_more(void)
{
	struct tpcset ran = run_cooperative(9);

	assert_true(tpcset_count(&ran) >= 9);
}

TIMED(cooperative)
{
	step_aside();
	/* Who steps aside waits for nobody; who cannot does. */
	assert_is_held_no_more(run_in_half);
	assert_comes_to_be_held(run_cooperatively_in_all);
	/* It has all of the partition. */
	assert_cooperative_runs_in(8, gpu_range(0, 7));
	assert_cooperative_runs_in(4, gpu_range(0, 3));
	gpu_assert_inside(gpu_range(0, 3));
	assert_nothing_is_said();
	/* And what the partition cannot hold is widened, as ever. */
	run_cooperatively_in_more();
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), 1);
}

/* What the partition can never hold waits for nobody. */
TIMED(too_large)
{
	step_aside();
	assert_is_held_no_more(run_cooperatively_in_more);
	assert_true(gpu_counted(SEGMENT_WIDENED) > 0);
}

/* Behind so much work, one that needs all has to wait for too long, and may go all the same: no other one does with it. */
TIMED(behind_one_that_may_go)
{
	step_aside();
	CUdeviceptr output = gpu_new_output(&gpu);
	CUstream stream = gpu_new_stream();
	struct gpu_under_test elsewhere = gpu; /* those in flight write to the other output */

	elsewhere.output = gpu_new_output(&gpu);
	for (int i = 0; i < 3; i++) {
		timed_launch(200);
		gpu_check(gpu_launch_cooperative(&elsewhere, room_on(8)));
		gpu_assert_ran(gpu_where_into(&gpu, stream, output), gpu_range(0, 3));
		gpu_check(cuCtxSynchronize());
	}
}

static atomic_bool has_ended;

static void *launch_beside(void *unused)
{
	CUdeviceptr output;

	gpu_check(cuCtxSetCurrent(gpu.context));
	output = gpu_new_output(&gpu);
	while (!atomic_load(&has_ended))
		gpu_where_into(&gpu, CU_STREAM_PER_THREAD, output);
	return unused;
}

/* The launches of another thread go all the time; one that waits does in the end. */
TIMED(cooperative_beside_others)
{
	step_aside();
	pthread_t thread = thread_start(launch_beside, NULL);

	assert_cooperative_runs_in(8, gpu_range(0, 7));
	atomic_store(&has_ended, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* One cluster of two TPCs of one group. */
TIMED(clusters)
{
	struct tpcset group, pair = {{0}}, first = {{0}};
	uint32_t sms[64];

	be_lower(timed_open_gpu);
	if (gpu.topology->compute_major < 9)
		timed_leave_out("this GPU has no clusters");
	group = topology_virtual_gpc(gpu.topology, 0);
	tpcset_add(&first, tpcset_next(&group, 0));
	tpcset_add(&pair, tpcset_next(&group, 0));
	tpcset_add(&pair, tpcset_next(&group, tpcset_next(&group, 0) + 1));
	have(pair);
	want(tpcset_without(&pair, &first));
	assert_comes_to_run_in(first);
	assert_true(gpu_ran_inside(gpu_where_clusters(&gpu, gpu.topology->sms_per_tpc, 64, sms), first));
	assert_true(gpu_ran_inside(gpu_where_clusters(&gpu, 2 * gpu.topology->sms_per_tpc, 64, sms), pair));
	assert_nothing_is_said();
}

/* On the whole GPU, they are nothing to be said: the same launch would stay as it is. */
TIMED_BY(timed_run_on_simulator, unknown_descriptors)
{
	be_lower(timed_open_gpu);
	struct tpcset all = gpu_all(&gpu), theirs = gpu_range(3, 5);

	want(theirs);
	assert_comes_to_run_in(tpcset_without(&all, &theirs));
	setenv("SIM_FAULTS", "bad-qmd", 1);
	gpu_assert_inside(all);
	assert_nothing_is_said();
	have(gpu_range(0, 7));
	gpu_run(&gpu);
	assert_int_equal(gpu_counted(SEGMENT_UNKNOWN_QMD), 1);
}

/* Every kernel of a graph runs in the same TPCs. */
static struct tpcset run_graph(CUgraphExec exec)
{
	graph_launch(exec);
	for (unsigned int i = 1; i < NODES; i++)
		graph_assert_in(i, graph_ran(0));
	return graph_ran(0);
}

/* The fills ahead may still be in flight, and then the graph runs in the own part: a single launch may be elsewhere. */
static void assert_graph_comes_to_run_in(CUgraphExec exec, struct tpcset set)
{
	timed_wait_until(gpu_ran_in(run_graph(exec), set));
}

TIMED(graphs)
{
	be_lower(open_for_graphs);
	have(gpu_range(0, 7));
	CUgraphExec exec = graph_instantiate(graph_make());
	CUDA_KERNEL_NODE_PARAMS changed = graph_parameters(0);

	assert_graph_comes_to_run_in(exec, gpu_range(0, 7));
	want(gpu_range(4, 11));
	assert_graph_comes_to_run_in(exec, gpu_range(0, 3));
	/* What a call uploads that launches nothing may run anywhere else: its next launch uploads it again. */
	changed.blockDimX /= 2;
	gpu_check(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &changed));
	gpu_check(cuGraphUpload(exec, NULL));
	graph_launch(exec);
	graph_assert_in(0, gpu_range(0, 3));
	want_nothing();
	assert_graph_comes_to_run_in(exec, gpu_range(0, 7));
	assert_nothing_is_said();
}

/* --- borrowing ------------------------------------------------------------------------------------------------------ */

/* It has TPCs 0 to 3, and may borrow; 4 to 11 are lent. */
static void be_borrower_for(uint32_t us, void (*open)(void))
{
	struct segment_revision revision = {.lending.borrows = SEGMENT_BORROW_SET};

	open_client(open);
	revision.lending.borrow = gpu_all(&gpu);
	have(gpu_range(0, 3));
	timed_give_to_client(&revision);
	atomic_store(&shared->lent, gpu_range(4, 11).words[0]);
	atomic_store(&shared->lend_us, us);
	atomic_store(&shared->speaks, true);
}

static void be_borrower(void)
{
	be_borrower_for(LIMIT_US, timed_open_gpu);
}

static void assert_borrows(void)
{
	assert_comes_to_run_in(gpu_range(0, 11));
}

/* Of twenty launches in a row, none does. */
static bool borrows_nothing(void)
{
	const struct tpcset own = gpu_range(0, 3);
	bool stays = true;

	for (int i = 0; i < 20 && stays; i++) {
		struct tpcset ran = gpu_where(&gpu, NULL);

		stays = tpcset_is_subset(&ran, &own);
		timed_sleep_ms(2);
	}
	return stays;
}

/* The news may be late. */
static void assert_comes_to_borrow_nothing(void)
{
	timed_until (borrows_nothing())
		;
}

TIMED(borrowed_and_given_back)
{
	be_borrower();
	assert_borrows();
	for (int i = 0; i < 3; i++) {
		want(gpu_range(4, 11));
		assert_comes_to_run_in(gpu_range(0, 3));
		want_nothing();
		assert_borrows();
	}
	/* Nobody lends any more. */
	atomic_store(&shared->lend_us, 0);
	assert_comes_to_borrow_nothing();
	atomic_store(&shared->lend_us, LIMIT_US);
	assert_borrows();
	/* What it may borrow is another set. */
	timed_give(&(struct segment_revision){.lending = {.borrows = SEGMENT_BORROW_SET, .borrow = gpu_range(8, 9)}});
	assert_comes_to_run_in(tpcset_or(&(struct tpcset){{0xf}}, &(struct tpcset){{0x300}}));
	timed_give(&(struct segment_revision){.lending.borrows = SEGMENT_BORROW_OFF});
	assert_comes_to_run_in(gpu_range(0, 3));
	assert_nothing_is_said();
}

/* A wait for the GPU executes no instruction of ours in a lender, or in a borrower without a rest. */
TIMED_BY(timed_run_on_simulator, waits_are_not_announced)
{
	be_borrower();
	setenv("SIM_FAULTS", "heard-waits", 1);
	assert_borrows();
	gpu_check(cuStreamSynchronize(NULL));
	timed_give_to_client(&(struct segment_revision){.lending.lend_us = LIMIT_US});
	gpu_run(&gpu);
}

/* From the lender's launch on: not when somebody looks, who has the machine for itself only then. */
static void assert_leaves_at_once(void)
{
	for (int i = 0; i < 8; i++) {
		assert_borrows();
		/* Early ones are looked at, each of them. */
		timed_sleep_ms(LIMIT_US / 1000);
		for (int more = 0; more < 3; more++)
			gpu_run(&gpu);
		want(gpu_range(4, 11));
		while (!atomic_load(&shared->is_in_flight))
			timed_sleep_ms(1);
		gpu_assert_inside(gpu_range(0, 3));
		want_nothing();
	}
}

TIMED(at_once)
{
	be_borrower();
	assert_leaves_at_once();
}

/* The lender's pauses are much shorter than LIMIT. */
static bool borrows_between_steps(void)
{
	struct tpcset ran = {{0}};

	want(gpu_range(4, 11));
	while (!atomic_load(&shared->is_in_flight))
		timed_sleep_ms(1);
	want_nothing();
	while (atomic_load(&shared->is_in_flight))
		timed_sleep_ms(1);
	for (int i = 0; i < 20 && !gpu_ran_in(ran, gpu_range(0, 11)); i++) {
		ran = gpu_where(&gpu, NULL);
		timed_sleep_ms(2);
	}
	return gpu_ran_in(ran, gpu_range(0, 11));
}

TIMED(early)
{
	be_borrower_for(SEGMENT_LEND_MAX_US, timed_open_gpu);
	assert_borrows();
	timed_until (borrows_between_steps())
		;
	assert_nothing_is_said();
}

static struct tpcset where_pairs(void)
{
	uint32_t sms[64];

	return gpu_where_clusters(&gpu, 2, 64, sms);
}

/* Slowly, likewise. */
static void assert_pairs_come_to_run_in(struct tpcset set)
{
	timed_wait_until(gpu_ran_in(where_pairs(), set) && gpu_ran_in(gpu_where(&gpu, NULL), set));
}

/* The masks for clusters of the last launches are kept, with lent TPCs and without. */
TIMED(clusters_borrow)
{
	const struct tpcset own = gpu_range(0, 3), some = {{0xf0f}};

	be_borrower();
	if (gpu.topology->compute_major < 9)
		timed_leave_out("this GPU has no clusters");
	for (int i = 0; i < 3; i++) {
		assert_pairs_come_to_run_in(gpu_range(0, 11));
		want(gpu_range(4, 11));
		while (!atomic_load(&shared->is_in_flight))
			timed_sleep_ms(1);
		assert_true(gpu_ran_inside(where_pairs(), own));
		assert_true(gpu_ran_inside(gpu_where(&gpu, NULL), own));
		want_nothing();
	}
	for (int i = 0; i < 10; i++)
		assert_pairs_come_to_run_in(gpu_range(0, 11));
	atomic_store(&shared->lent, gpu_range(8, 11).words[0]);
	timed_wait_until(gpu_ran_in(gpu_where(&gpu, NULL), some));
	assert_true(gpu_ran_inside(where_pairs(), some));
	assert_pairs_come_to_run_in(some);
	assert_nothing_is_said();
}

static uint64_t own_in_flight(void)
{
	return gpu_kernels(&gpu).in_flight;
}

TIMED(too_long)
{
	be_borrower_for(1000, timed_open_gpu);
	timed_until (timed_look().state == SEGMENT_TIME_TOO_LONG) {
		timed_launch(1);
		gpu_check(cuCtxSynchronize());
	}
	assert_borrows();
}

static uint64_t borrowed_tpc_us(void)
{
	struct segment segment = gpu_own_segment();
	uint64_t tpc_us = segment_read_borrowed(&segment).tpc_us;

	segment_close(&segment);
	return tpc_us;
}

/* One that is too long is tried now and then. */
static bool most_of_ten_borrow(void)
{
	uint64_t before_them = borrowed_tpc_us();

	for (int i = 0; i < 10; i++) {
		timed_launch_into(NULL, 1, 120000000);
		gpu_check(cuCtxSynchronize());
	}
	timed_sleep_ms(20); /* our thread adds what it sees */
	return borrowed_tpc_us() - before_them >= UINT64_C(6) * 60000 * 8;
}

/* A launch of some 60 ms is too long for half of LIMIT; and all of it is this process's while the other borrower rests. */
TIMED(another_borrower_rests)
{
	struct child another;

	be_borrower();
	another = child_start(be_another_borrower_at_rest);
	timed_until (atomic_load(&shared->rests))
		;
	timed_sleep_ms(50);
	timed_until (most_of_ten_borrow())
		;
	kill(another.pid, SIGKILL);
	child_wait(&another);
}

#define PIPELINE 20

/* Of some 3 ms each: all together more than may be in flight there, half of LIMIT, and less than an episode; and one much less than
 * LIMIT, also where a busy machine sees its end late. */
#define PIPELINE_CYCLES 6000000

/* A borrower whose owner works. */
static void be_pipeline(CUevent ends[PIPELINE])
{
	if (SANITIZED)
		timed_leave_out("with a sanitizer, nobody looks in time when a kernel has ended");
	be_borrower_for(90000, timed_open_gpu);
	want(gpu_range(4, 11));
	assert_comes_to_run_in(gpu_range(0, 3));
	for (int i = 0; i < PIPELINE; i++)
		gpu_check(cuEventCreate(&ends[i], 0));
}

/* More is in flight than may be, and the program launches again and again: it comes to borrow all the same. */
TIMED(a_full_pipeline)
{
	CUevent ends[PIPELINE];

	be_pipeline(ends);
	timed_launch_into(NULL, PIPELINE, PIPELINE_CYCLES);
	want_nothing();
	int i = 0;

	timed_until (borrowed_tpc_us() > 0) {
		timed_launch_into(NULL, 1, PIPELINE_CYCLES);
		gpu_check(cuEventRecord(ends[i % PIPELINE], NULL));
		gpu_check(cuEventSynchronize(ends[++i % PIPELINE]));
	}
}

/* It never waits until its GPU has nothing to do: what waits in the queue comes to borrow, and nothing waits for it in its call. */
TIMED(a_deep_queue)
{
	CUevent ends[PIPELINE];

	be_pipeline(ends);
	for (int i = 0; i < PIPELINE; i++) {
		timed_launch_into(NULL, 1, PIPELINE_CYCLES);
		gpu_check(cuEventRecord(ends[i], NULL));
	}
	want_nothing();
	int i = 0;

	timed_until (borrowed_tpc_us() > 0) {
		gpu_check(cuEventSynchronize(ends[i]));
		timed_launch_into(NULL, 1, PIPELINE_CYCLES);
		gpu_check(cuEventRecord(ends[i], NULL));
		i = (i + 1) % PIPELINE;
	}
	assert_int_equal(timed_look().held, 0);
}

#define LONG_CYCLES 100000000 /* some 50 ms: longer than LIMIT */

/* While the owner works, a short one does not wait for long ones, which nobody bounds: another stream may always have one. */
TIMED(a_short_one_beside_a_long_one)
{
	be_borrower_for(10000, timed_open_gpu);
	want(gpu_range(4, 11));
	assert_comes_to_run_in(gpu_range(0, 3));
	CUstream stream = gpu_new_stream();
	double known = timed_now_s() + 1;
	/* On hardware, kernels of several streams run at once. */
	unsigned int in_a_row = 0, least = gpu_is_simulated() ? 2 : 1;

	timed_until (in_a_row == 10) {
		timed_launch_into(NULL, 1, LONG_CYCLES);
		if (timed_now_s() < known)
			gpu_check(cuCtxSynchronize());
		launch_blocks(2, stream);
		in_a_row = timed_now_s() > known && own_in_flight() >= least ? in_a_row + 1 : 0;
		gpu_check(cuCtxSynchronize());
	}
}

/* Work is in flight: our thread has looked, and told the time of waits, when more of the presence is counted. */
static void wait_for_a_look(void)
{
	uint64_t present_us = timed_look().present_us;

	timed_wait_until(timed_look().present_us > present_us);
}

/* How long launches were held up to now, in us. A look may have begun before. */
static uint64_t held_us(void)
{
	wait_for_a_look();
	wait_for_a_look();
	return timed_look().aside_us;
}

/* A kernel that lasts longer than its test: 6 s on hardware, whatever the machine does on the simulator. */
static void launch_one_that_stays(void)
{
	timed_launch_into(NULL, 1, gpu_is_simulated() ? UINT64_C(600000000000) : UINT64_C(12000000000));
}

/* A client that ends with work in flight may take MPS's server with it. */
static void end_beside_one_that_stays(void)
{
	if (!gpu_is_simulated())
		gpu_check(cuCtxSynchronize());
	_exit(0);
}

/* What is in flight does not end soon: so others wait for LIMIT, at most. */
static bool ten_are_held_shortly(CUstream stream)
{
	uint64_t until_now = held_us();

	for (unsigned int i = 0; i < 10; i++)
		launch_blocks(2, stream);
	return held_us() - until_now < 10 * UINT64_C(30000);
}

/* While the owner rests. */
TIMED(beside_one_that_stays)
{
	be_borrower_for(10000, timed_open_gpu);
	assert_borrows();
	CUstream stream = gpu_new_stream();
	double known = timed_now_s() + 1;

	while (timed_now_s() < known) {
		launch_blocks(2, stream);
		gpu_check(cuCtxSynchronize());
	}
	launch_one_that_stays();
	timed_until (ten_are_held_shortly(stream))
		;
	/* On hardware, kernels of several streams run at once. */
	assert_true(own_in_flight() > (gpu_is_simulated() ? 10 : 0));
	end_beside_one_that_stays();
}

#define NEW_ONES 400

/* One never ends for as long as the test lasts, and so nothing can be measured: new ones do not wait for that again and again. One
 * does each two seconds, at most; otherwise nearly all would. */
TIMED(new_ones_beside_one_that_stays)
{
	be_borrower_for(10000, timed_open_gpu);
	want(gpu_range(4, 11));
	assert_comes_to_run_in(gpu_range(0, 3));
	CUstream stream = gpu_new_stream();
	uint64_t most = timed_look().held + NEW_ONES / 8;

	launch_one_that_stays();
	for (unsigned int i = 0; i < NEW_ONES && timed_look().held <= most; i++) {
		launch_blocks(2 + i % 16, stream);
		timed_sleep_ms(2);
	}
	assert_true(own_in_flight() > 0);
	assert_true(timed_look().held <= most);
	end_beside_one_that_stays();
}

TIMED(a_lender_without_exact_ends)
{
	be_borrower();
	assert_borrows();
	atomic_store(&shared->has_gap, true);
	assert_comes_to_borrow_nothing();
}

TIMED(a_borrower_without_exact_ends)
{
	struct segment segment;

	be_borrower();
	assert_borrows();
	segment = gpu_own_segment();
	counts_note_gap_everywhere(&segment, COUNTS_SLOT_USED);
	segment_close(&segment);
	assert_comes_to_borrow_nothing();
}

static void return_at_once(void *unused)
{
}

/* Behind its host, the first one runs in the own part, whatever is lent. */
TIMED(behind_the_host)
{
	be_borrower();
	CUstream stream = gpu_new_stream();

	if (!cuLaunchHostFunc)
		timed_leave_out("this driver has no calls of the host");
	for (int i = 0; i < 3; i++) {
		struct tpcset ran = {{0}};

		timed_until (gpu_ran_in(ran, gpu_range(0, 11))) {
			timed_sleep_ms(1);
			ran = gpu_where(&gpu, stream);
		}
		gpu_check(cuLaunchHostFunc(stream, return_at_once, NULL));
		gpu_assert_runs_in(&gpu, stream, gpu_range(0, 3));
	}
}

/* A launch of `stream` waits for an event of `other`. */
static void wait_for(CUstream stream, CUstream other, CUevent event)
{
	gpu_check(cuEventRecord(event, other));
	gpu_check(cuStreamWaitEvent(stream, event, 0));
}

/* All that is before the event is in flight, and counted: so a program whose launches always wait for one borrows. Behind the
 * host, even of another stream, it does not. */
TIMED(behind_an_event)
{
	be_borrower();
	CUstream stream = gpu_new_stream(), other = gpu_new_stream();
	struct tpcset narrow = gpu_range(0, 3), ran;
	CUevent event;

	gpu_check(cuEventCreate(&event, 0));
	for (int i = 0; i < 3; i++) {
		ran = narrow;
		timed_until (gpu_ran_in(ran, gpu_range(0, 11))) {
			timed_sleep_ms(1);
			wait_for(stream, other, event);
			ran = gpu_where(&gpu, stream);
		}
		if (!cuLaunchHostFunc)
			continue;
		gpu_check(cuLaunchHostFunc(other, return_at_once, NULL));
		wait_for(stream, other, event);
		gpu_assert_runs_in(&gpu, stream, narrow);
		gpu_where(&gpu, other);
	}
}

/* Behind a kernel of another GPU, which nobody counts here, it runs in the own part. */
TIMED(behind_another_gpu)
{
	struct gpu_under_test second;
	uint64_t cycles = 100000000;
	CUevent event;

	be_borrower();
	if (gpu_initialise() < 2)
		timed_leave_out("there is one GPU only");
	gpu_open(&second, 1);
	gpu_check(cuCtxSetCurrent(second.context));
	gpu_check(cuEventCreate(&event, 0));
	void *parameters[] = {&second.output, &cycles};

	for (int i = 0; i < 3; i++) {
		gpu_check(cuCtxSetCurrent(gpu.context));
		assert_borrows();
		gpu_check(cuCtxSetCurrent(second.context));
		gpu_check(cuLaunchKernel(second.where, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
		gpu_check(cuEventRecord(event, NULL));
		gpu_check(cuCtxSetCurrent(gpu.context));
		gpu_check(cuStreamWaitEvent(NULL, event, 0));
		gpu_assert_inside(gpu_range(0, 3));
		gpu_check(cuCtxSetCurrent(second.context));
		gpu_check(cuCtxSynchronize());
	}
}

/* What is captured does not run: what runs much later says nothing of how long it takes. */
TIMED(captured_is_not_measured)
{
	bool has_borrowed = false;
	CUgraph graph;

	be_borrower();
	assert_borrows();
	CUstream stream = gpu_new_stream();

	for (int i = 0; i < 7; i++) {
		gpu_check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		launch_blocks(BLOCKS, stream);
		gpu_check(cuStreamEndCapture(stream, &graph));
		gpu_check(cuGraphDestroy(graph));
		timed_sleep_ms(80);
		launch_blocks(1, stream);
		gpu_check(cuStreamSynchronize(stream));
	}
	/* Fewer than would make a wrong measurement forgotten. */
	for (int i = 0; i < 10 && !has_borrowed; i++) {
		launch_blocks(BLOCKS, stream);
		gpu_check(cuStreamSynchronize(stream));
		has_borrowed = !gpu_ran_inside(gpu_read_tpcs(&gpu, gpu.output, BLOCKS), gpu_range(0, 3));
	}
	assert_true(has_borrowed);
}

TIMED(cooperative_never_borrows)
{
	be_borrower();
	assert_borrows();
	for (int i = 0; i < 20; i++)
		assert_cooperative_runs_in(4, gpu_range(0, 3));
	assert_borrows();
	/* What its partition cannot hold is widened, and nothing is borrowed for it. */
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), 0);
	run_cooperative(8);
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), 1);
}

TIMED(graphs_borrow)
{
	be_borrower_for(LIMIT_US, open_for_graphs);
	CUgraphExec exec = graph_instantiate(graph_make());

	for (int i = 0; i < 2; i++) {
		assert_graph_comes_to_run_in(exec, gpu_range(0, 11));
		want(gpu_range(4, 11));
		assert_graph_comes_to_run_in(exec, gpu_range(0, 3));
		want_nothing();
	}
	assert_graph_comes_to_run_in(exec, gpu_range(0, 11));
	atomic_store(&shared->lend_us, 0);
	assert_graph_comes_to_run_in(exec, gpu_range(0, 3));
	assert_nothing_is_said();
}

static void watch(struct segment *segment)
{
	struct error error;

	assert_done(lease_renew(segment, process_clock_ns(), &error));
}

/* The graph leaves the lent TPCs although nothing is left to decide about, and a watcher looks all the time. */
TIMED(graphs_after_the_last_loan)
{
	be_borrower_for(LIMIT_US, open_for_graphs);
	CUgraphExec exec = graph_instantiate(graph_make());
	struct segment segment = gpu_own_segment();

	for (int i = 0; i < 2; i++) {
		watch(&segment);
		atomic_store(&shared->lend_us, LIMIT_US);
		assert_graph_comes_to_run_in(exec, gpu_range(0, 11));
		atomic_store(&shared->lend_us, 0);
		timed_until (gpu_ran_in(run_graph(exec), gpu_range(0, 3)))
			watch(&segment);
	}
	segment_close(&segment);
}

/* From its first call on, whenever it is stopped. */
static void keep_one_in_flight(void)
{
	static CUevent ends[2];
	static unsigned int last;

	for (unsigned int i = 0; i < 2 && !ends[i]; i++)
		gpu_check(cuEventCreate(&ends[i], 0));
	timed_launch(1);
	gpu_check(cuEventRecord(ends[last ^= 1], NULL));
	gpu_check(cuEventSynchronize(ends[last ^ 1]));
}

/* Both of these until it is told otherwise. */
static void be_idle(void)
{
	gpu_launch_empty(&gpu);
	gpu_check(cuCtxSynchronize());
	while (!atomic_load(&shared->works))
		timed_sleep_ms(1);
}

static void be_in_a_long_one(void)
{
	timed_launch_into(NULL, 1, UINT64_C(4000000000));
	atomic_store(&shared->is_in_long, true);
	gpu_check(cuCtxSynchronize());
	while (atomic_load(&shared->works) == LONG)
		timed_sleep_ms(1);
}

static void be_lender_program(void)
{
	struct segment_revision revision = {.lending.lend_us = LIMIT_US};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	gpu_load_driver();
	timed_open_gpu();
	have(gpu_range(4, 11));
	timed_give(&revision);
	for (;;) {
		unsigned int works = atomic_load(&shared->works);

		if (works == SHORT)
			keep_one_in_flight();
		else if (works == LONG)
			be_in_a_long_one();
		else
			be_idle();
	}
}

/* A real program lends, works, is stopped, goes on and is killed. */
TIMED(lender_program)
{
	struct child program = child_start(be_lender_program);

	be_borrower();
	atomic_store(&shared->lent, 0);
	atomic_store(&shared->lend_us, 0);
	assert_borrows();
	atomic_store(&shared->works, SHORT);
	assert_comes_to_run_in(gpu_range(0, 3));
	atomic_store(&shared->works, 0);
	assert_borrows();
	atomic_store(&shared->works, SHORT);
	assert_comes_to_run_in(gpu_range(0, 3));
	atomic_store(&shared->works, LONG);
	timed_wait_until(atomic_load(&shared->is_in_long));
	kill(program.pid, SIGSTOP);
	for (int i = 0; i < 5; i++) /* for longer than LIMIT: one that was taken for idle would lend them then */
		assert_true(borrows_nothing());
	atomic_store(&shared->works, 0);
	kill(program.pid, SIGCONT);
	assert_borrows();
	kill(program.pid, SIGKILL);
	child_wait(&program);
	assert_comes_to_run_in(gpu_range(0, 3));
	assert_nothing_is_said();
}

static void cancel_in_call(void *user, int domain, int id, const void *parameters)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
}

static void *launch_once(void *unused)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_launch_empty(&gpu);
	pthread_testcancel();
	return unused;
}

/* In the middle of its call: it is in nobody's way then. */
TIMED(cancelled)
{
	uint32_t tool;

	if (SANITIZED)
		timed_leave_out("a sanitizer does not permit it");
	be_borrower();
	assert_borrows();
	gpu_check(tool_subscribe_with_name(&tool, cancel_in_call, NULL, "test"));
	gpu_check(tool_enable_domain(1, tool, API));
	assert_int_equal(pthread_join(thread_start(launch_once, NULL), NULL), 0);
	gpu_check(tool_unsubscribe(tool));
	gpu_check(cuCtxSynchronize());
	assert_borrows();
}

/* --- launches that wait in the queue ------------------------------------------------------------------------------ */

#define WAITING 5
#define WAITING_STREAMS 2

static struct {
	CUstream stream;
	CUdeviceptr outputs[WAITING];
} queues[WAITING_STREAMS];
static unsigned int queue_count;

static void launch_where(CUstream stream, CUdeviceptr output, uint64_t cycles)
{
	void *parameters[] = {&output, &cycles};

	gpu_check(cuLaunchKernel(gpu.where, GPU_BLOCKS(&gpu), 1, 1, GPU_THREADS, 1, 1, 0, stream, parameters, NULL));
}

/* In each stream, short launches wait behind a launch of some 150 ms, which is longer than LIMIT. */
static void fill_queues(void)
{
	for (unsigned int i = 0; i < queue_count; i++) {
		timed_launch_into(queues[i].stream, 1, 3 * LONG_CYCLES);
		for (unsigned int at = 0; at < WAITING; at++)
			launch_where(queues[i].stream, queues[i].outputs[at], PIPELINE_CYCLES / 4);
	}
}

static bool have_run_in(unsigned int first, struct tpcset set)
{
	bool all = true;

	gpu_check(cuCtxSynchronize());
	for (unsigned int i = 0; i < queue_count; i++) {
		for (unsigned int at = first; at < WAITING; at++)
			all &= gpu_ran_in(gpu_read_tpcs(&gpu, queues[i].outputs[at], GPU_BLOCKS(&gpu)), set);
	}
	return all;
}

static bool last_have_borrowed(void)
{
	return have_run_in(WAITING - 1, gpu_range(0, 11));
}

/* No launch has ended. */
static bool is_full(void)
{
	return own_in_flight() == (WAITING + 1) * queue_count + 1;
}

static void lender_comes_back(void)
{
	want(gpu_range(4, 11));
	while (!atomic_load(&shared->is_in_flight))
		timed_sleep_ms(1);
}

static void lender_goes(void)
{
	want_nothing();
	while (atomic_load(&shared->is_in_flight))
		timed_sleep_ms(1);
}

/* With waiting launches in streams. */
static void be_queue(unsigned int count)
{
	if (SANITIZED)
		timed_leave_out("with a sanitizer, nobody looks in time when a kernel has ended");
	be_borrower();
	queue_count = count;
	for (unsigned int i = 0; i < count; i++) {
		queues[i].stream = gpu_new_stream();
		for (unsigned int at = 0; at < WAITING; at++)
			queues[i].outputs[at] = gpu_new_output(&gpu);
	}
}

static void assert_waiting_borrow(void)
{
	fill_queues();
	timed_until (last_have_borrowed())
		fill_queues();
}

/* The next launch calls waiting launches back, but for the first, which the GPU may have fetched. On a machine that was
 * too busy, the result says nothing. */
static bool are_called_back(void)
{
	fill_queues();
	lender_comes_back();
	launch_blocks(1, queues[0].stream);
	bool says_something = is_full();

	if (says_something)
		assert_true(have_run_in(1, gpu_range(0, 3)));
	gpu_check(cuCtxSynchronize());
	lender_goes();
	return says_something;
}

static void assert_waiting_come_back(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		assert_waiting_borrow();
		timed_until (are_called_back())
			;
	}
}

TIMED(what_waits_comes_back)
{
	be_queue(1);
	assert_waiting_come_back();
	assert_nothing_is_said();
}

TIMED(what_waits_in_two_streams_comes_back)
{
	be_queue(WAITING_STREAMS);
	assert_waiting_come_back();
	assert_nothing_is_said();
}

static int disable_all_but(uint64_t tpcs)
{
	return libsmctrl_set_global_mask(~tpcs);
}

/* Waiting launches keep to a mask of the program. */
TIMED(what_waits_obeys_masks)
{
	be_queue(1);
	assert_waiting_borrow();
	assert_int_equal(disable_all_but(0x3), 0);
	for (unsigned int i = 0; i < 3; i++) {
		fill_queues();
		assert_true(have_run_in(0, gpu_range(0, 1)));
	}
	assert_int_equal(libsmctrl_set_global_mask(1), 0);
	for (unsigned int i = 0; i < 3; i++) {
		fill_queues();
		assert_true(have_run_in(0, gpu_range(1, 3)));
	}
	assert_int_equal(libsmctrl_set_global_mask(0), 0);
	assert_waiting_borrow();
}

/* Launches wait while the lender works. Then the lender pauses, and the program waits for the last launch. */
static bool last_borrows(void (*meanwhile)(void))
{
	lender_comes_back();
	fill_queues();
	meanwhile();
	lender_goes();
	return last_have_borrowed();
}

static void do_nothing(void)
{
}

TIMED(while_the_host_waits)
{
	be_queue(1);
	assert_waiting_borrow();
	timed_until (last_borrows(do_nothing))
		;
	assert_nothing_is_said();
}

static void give_as_before(void)
{
	timed_give(&(struct segment_revision){.lending = {.borrows = SEGMENT_BORROW_SET, .borrow = gpu_all(&gpu)}});
}

/* No launch from before an edit is made wide. */
TIMED(edited_while_launches_wait)
{
	be_queue(1);
	assert_waiting_borrow();
	timed_until (last_borrows(do_nothing))
		;
	for (unsigned int i = 0; i < 3; i++)
		assert_false(last_borrows(give_as_before));
	timed_until (last_borrows(do_nothing))
		;
}

/* A second subscriber takes the place of our timestamps. */
static void take_slot(void *user, int domain, int id, const void *parameters)
{
	static struct qmd_release release;
	static const struct qmd_saved_slot nothing;
	const struct qmd_family *family = qmd_family_for(gpu.topology->compute_major, gpu.topology->compute_minor);
	void *qmd = (void *)(uintptr_t)((const uint64_t *)parameters)[4];

	if (domain == LAUNCHES && id == BEFORE_UPLOAD &&
	    qmd_release_prepare(&release, family, QMD_STAMPING_SLOT, QMD_STAMPS, 16, 1))
		qmd_restore_slot(&release, qmd, &nothing);
}

/* Then no length is known. No launch borrows, and -l says the reason. */
TIMED(another_has_the_slot)
{
	uint32_t tool;

	be_borrower();
	gpu_check(tool_subscribe_with_name(&tool, take_slot, NULL, "test"));
	gpu_check(tool_enable_domain(1, tool, LAUNCHES));
	timed_until (gpu_counted(SEGMENT_QUEUE_SLOT) > 0)
		gpu_run(&gpu);
	assert_true(borrows_nothing());
	gpu_check(tool_unsubscribe(tool));
	assert_borrows();
}

/* --- all the time ----------------------------------------------------------------------------------------------------- */

static struct tpcset launch_plainly(void)
{
	static CUdeviceptr output;

	if (!output)
		output = gpu_new_output(&gpu);
	return gpu_where_into(&gpu, CU_STREAM_PER_THREAD, output);
}

static struct tpcset launch_graph(void)
{
	static CUgraphExec exec;

	if (!exec)
		exec = graph_instantiate(graph_make());
	graph_replay(exec);
	return graph_ran(0);
}

/* A lender's launches, of kernels and of graphs, wake the borrower's thread. */
static void assert_wakes(struct tpcset (*launch)(void))
{
	unsigned int woken = atomic_load(&shared->woken);

	timed_until (atomic_load(&shared->woken) >= woken + 3)
		launch();
}

TIMED(launches_wake_borrowers)
{
	struct child another;

	open_client(open_for_graphs);
	timed_give_to_client(&(struct segment_revision){.lending.lend_us = LIMIT_US});
	another = child_start(be_another_borrower_that_sleeps);
	assert_wakes(launch_plainly);
	assert_wakes(launch_graph);
	kill(another.pid, SIGKILL);
	child_wait(&another);
}

static struct tpcset launch_cooperatively(void)
{
	static unsigned int tpcs;

	tpcs = tpcs % 8 + 1;
	return run_cooperative(tpcs);
}

static struct tpcset (*const ways[])(void) = {launch_plainly, launch_graph, launch_cooperatively};

#define THREADS COUNT_OF(ways)

/* Returns how many launches ran outside of the partition. */
static void *launch_all_the_time(void *number)
{
	uintptr_t strays = 0;

	gpu_check(cuCtxSetCurrent(gpu.context));
	while (!atomic_load(&has_ended))
		strays += !gpu_ran_inside(ways[(uintptr_t)number](), gpu_range(0, 7));
	return (void *)strays;
}

/* The higher one wants other TPCs each few milliseconds. */
TIMED(changes)
{
	pthread_t threads[THREADS];
	unsigned int seed = 5;
	void *strays;

	be_lower(open_for_graphs);
	have(gpu_range(0, 7));
	assert_comes_to_run_in(gpu_range(0, 7));
	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = thread_start(launch_all_the_time, (void *)i);
	for (double end = timed_now_s() + 2; timed_now_s() < end; timed_sleep_ms(rand_r(&seed) % 8))
		want((struct tpcset){{(uint64_t)rand_r(&seed) % 0x10000 & (uint64_t)rand_r(&seed)}});
	atomic_store(&has_ended, true);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &strays);
		assert_null(strays);
	}
	want_nothing();
	assert_comes_to_run_in(gpu_range(0, 7));
	assert_nothing_is_said();
}

RUN_TESTS_ALONE(NULL, NULL, set_up, tear_down)
