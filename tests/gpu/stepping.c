/*
 * A client of MPS steps aside: where its launches run while one of a higher priority wants some of its TPCs, and when that pauses.
 * Launches that cannot step aside run where they would run otherwise.
 *
 * The higher one is a process that says on the board what the test wants it to, and runs nothing; once, it is a real program.
 */
#include "../alone.h"
#include "base/process_clock.h"
#include "libsmctrl.h"
#include "state/board.h"
#include "support/client.h"
#include "support/graph.h"
#include "support/green.h"
#include "support/timed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIGH 80
#define LOW 20

/* --- the higher one ------------------------------------------------------------------------------------------------- */

static struct {
	atomic_bool is_ready;
	atomic_bool speaks;
	_Atomic uint64_t wanted; /* TPCs 0 … 63 that it wants to run on; none: it does not want to */
	atomic_bool works;       /* the real one */
	struct pci_address pci;
} *shared;

static pid_t higher;

static void speak(void)
{
	uint64_t now = process_clock_ns(), wanted = atomic_load(&shared->wanted);
	static uint64_t since;

	since = wanted == 0 ? 0 : since == 0 ? now : since;
	const struct board_claim claim = {
		.pci = shared->pci,
		.tpcs = {{wanted != 0 ? wanted : 1}},
		.priority = HIGH,
		.weight = SEGMENT_WEIGHT_USUAL,
		.wants = wanted != 0,
		.is_client = true,
		.wants_since = since,
		.said = now,
	};

	board_claim(&claim);
}

static _Noreturn void be_higher(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Who says nothing for a tenth of a second has gone: on a busy machine, it goes first, where it may. */
	setpriority(PRIO_PROCESS, 0, -20);
	board_join(NULL);
	atomic_store(&shared->is_ready, true);
	for (;;) {
		if (atomic_load(&shared->speaks))
			speak();
		timed_sleep_ms(1);
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
	while (!atomic_load(&shared->is_ready))
		timed_sleep_ms(1);
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

static struct tpcset range(unsigned int first, unsigned int last)
{
	return gpu_range(first, last);
}

static void be_client(unsigned int priority, void (*open)(void))
{
	struct segment_revision revision = {.rank = {.priority = segment_rank_of_priority(priority)}};

	gpu_load_driver();
	if (!gpu_is_simulated())
		timed_leave_out("under MPS, SM ids say nothing of TPCs");
	open();
	timed_give(&revision);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_HELD);
}

static void be_lower(void (*open)(void))
{
	be_client(LOW, open);
	shared->pci = gpu.topology->pci;
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
	gpu_set_partition(&gpu, &set);
}

/* Until kernels run in all of this set, and nowhere else, twice in a row. */
static void assert_comes_to_run_in(const struct gpu_under_test *where, struct tpcset set)
{
	double end = timed_now_s() + PATIENCE_S;
	struct tpcset ran, former;

	ran = gpu_where(where, NULL);
	do {
		former = ran;
		ran = gpu_where(where, NULL);
	} while (!(tpcset_equal(&former, &set) && tpcset_equal(&ran, &set)) && timed_now_s() < end);
	gpu_assert_equal(&former, &set);
	gpu_assert_equal(&ran, &set);
}

static void assert_runs_in(const struct gpu_under_test *where, struct tpcset set)
{
	struct tpcset ran = gpu_where(where, NULL);

	gpu_assert_equal(&ran, &set);
}

static uint64_t reason(enum segment_reason which)
{
	return gpu_counters().reasons[which];
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

static void assert_partition_is(struct tpcset set)
{
	struct segment segment = gpu_own_segment();
	struct segment_revision revision;
	uint64_t number;

	assert_true(segment_read(&segment, &revision, &number));
	segment_close(&segment);
	gpu_assert_equal(&segment_find(&revision, gpu.topology->pci)->set, &set);
}

/* --- plain launches ------------------------------------------------------------------------------------------------- */

static void step_aside_and_back(void)
{
	be_lower(timed_open_gpu);
	have(range(0, 7));
	assert_comes_to_run_in(&gpu, range(0, 7));
	want(range(4, 11));
	assert_comes_to_run_in(&gpu, range(0, 3));
	/* Its partition is the same. */
	assert_partition_is(range(0, 7));
	want(range(0, 0));
	assert_comes_to_run_in(&gpu, range(1, 7));
	want_nothing();
	assert_comes_to_run_in(&gpu, range(0, 7));
	/* Who shares no TPC with it is not in its way. */
	want(range(8, 20));
	timed_sleep_ms(50);
	assert_runs_in(&gpu, range(0, 7));
	assert_nothing_is_said();
}

static void step_aside_from_whole_gpu(void)
{
	be_lower(timed_open_gpu);
	struct tpcset all = gpu_all(&gpu), theirs = range(3, 5);

	assert_runs_in(&gpu, all);
	want(theirs);
	assert_comes_to_run_in(&gpu, tpcset_without(&all, &theirs));
	want_nothing();
	assert_comes_to_run_in(&gpu, all);
	assert_nothing_is_said();
}

static void step_aside_in_another_partition(void)
{
	be_lower(timed_open_gpu);
	have(range(0, 7));
	want(range(4, 11));
	assert_comes_to_run_in(&gpu, range(0, 3));
	have(range(6, 13));
	assert_comes_to_run_in(&gpu, range(12, 13));
	have(range(20, 23));
	assert_comes_to_run_in(&gpu, range(20, 23));
	assert_nothing_is_said();
}

/* Until launches have been held for so much longer. */
static void assert_comes_to_be_held(void (*launch)(void))
{
	double end = timed_now_s() + PATIENCE_S;
	uint64_t held = timed_look().aside_us;

	while (timed_look().aside_us < held + 50000 && timed_now_s() < end)
		launch();
	assert_true(timed_look().aside_us >= held + 50000);
}

/* Our thread says each time that it looks. */
static void assert_is_never_held(void (*launch)(void))
{
	timed_sleep_ms(50);
	double end = timed_now_s() + 0.3;
	uint64_t held = timed_look().aside_us;

	while (timed_now_s() < end)
		launch();
	timed_sleep_ms(50);
	assert_int_equal(timed_look().aside_us, held);
}

static void run_in_partition(void)
{
	assert_runs_in(&gpu, range(0, 3));
}

/* It waits instead; but not for ever. */
static void stay_where_nothing_is_left(void)
{
	be_lower(timed_open_gpu);
	have(range(0, 3));
	assert_comes_to_run_in(&gpu, range(0, 3));
	want(range(0, 7));
	assert_comes_to_be_held(run_in_partition);
	assert_nothing_is_said();
}

static atomic_bool is_done;

/* As it is. */
static void *edit_again_and_again(void *unused)
{
	while (!atomic_load(&is_done)) {
		have(range(0, 3));
		timed_sleep_ms(5);
	}
	return unused;
}

/* An edit of something else lets nobody go. */
static void wait_while_edited(void)
{
	pthread_t editor;

	be_lower(timed_open_gpu);
	have(range(0, 3));
	want(range(0, 7));
	assert_comes_to_be_held(run_in_partition);
	assert_int_equal(pthread_create(&editor, NULL, edit_again_and_again, NULL), 0);
	timed_sleep_ms(50);
	uint64_t held = timed_look().aside_us;

	for (unsigned int i = 0; i < 4; i++)
		run_in_partition();
	atomic_store(&is_done, true);
	assert_int_equal(pthread_join(editor, NULL), 0);
	timed_sleep_ms(50);
	assert_true(timed_look().aside_us >= held + 200000);
}

/* It has launched nothing on this GPU before. */
static void wait_with_first_launch(void)
{
	be_lower(timed_open_gpu);
	have(range(0, 3));
	want(range(0, 7));
	timed_sleep_ms(100);
	run_in_partition();
	timed_sleep_ms(50);
	assert_true(timed_look().aside_us >= 50000);
}

/* Where the higher one dies, too. */
static void step_back_when_it_dies(void)
{
	be_lower(timed_open_gpu);
	have(range(0, 7));
	want(range(4, 11));
	assert_comes_to_run_in(&gpu, range(0, 3));
	atomic_store(&shared->speaks, false);
	assert_comes_to_run_in(&gpu, range(0, 7));
}

/* The rule is taken away. */
static void step_back_without_a_rule(void)
{
	be_lower(timed_open_gpu);
	have(range(0, 7));
	want(range(4, 11));
	assert_comes_to_run_in(&gpu, range(0, 3));
	timed_give(&(struct segment_revision){.rank = {.priority = segment_rank_of_priority(SEGMENT_PRIORITY_MAX)}});
	assert_comes_to_run_in(&gpu, range(0, 7));
}

static void be_higher_program(void)
{
	be_client(HIGH, timed_open_gpu);
	have(range(4, 11));
	for (;;) {
		if (atomic_load(&shared->works))
			timed_launch(2);
		gpu_check(cuCtxSynchronize());
		timed_sleep_ms(1);
	}
}

static void step_aside_for_a_program(void)
{
	struct child program = child_start(be_higher_program);

	be_client(LOW, timed_open_gpu);
	have(range(0, 7));
	assert_comes_to_run_in(&gpu, range(0, 7));
	atomic_store(&shared->works, true);
	assert_comes_to_run_in(&gpu, range(0, 3));
	atomic_store(&shared->works, false);
	assert_comes_to_run_in(&gpu, range(0, 7));
	atomic_store(&shared->works, true);
	assert_comes_to_run_in(&gpu, range(0, 3));
	kill(program.pid, SIGKILL);
	assert_comes_to_run_in(&gpu, range(0, 7));
	child_wait(&program);
	assert_nothing_is_said();
}

TIMED_TEST(test_program, timed_run_and_pass, step_aside_for_a_program)
TIMED_TEST(test_aside_and_back, timed_run_and_pass, step_aside_and_back)
TIMED_TEST(test_whole_gpu, timed_run_and_pass, step_aside_from_whole_gpu)
TIMED_TEST(test_another_partition, timed_run_and_pass, step_aside_in_another_partition)
TIMED_TEST(test_nothing_is_left, timed_run_and_pass, stay_where_nothing_is_left)
TIMED_TEST(test_edits, timed_run_and_pass, wait_while_edited)
TIMED_TEST(test_first_launch, timed_run_and_pass, wait_with_first_launch)
TIMED_TEST(test_higher_dies, timed_run_and_pass, step_back_when_it_dies)
TIMED_TEST(test_highest, timed_run_and_pass, step_back_without_a_rule)

/* --- blocks that must run at once ----------------------------------------------------------------------------------- */

/* As many as fit on so many TPCs. */
static unsigned int room_on(unsigned int tpcs)
{
	int blocks = 0;

	gpu_check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.where, GPU_COOPERATIVE_THREADS, 0));
	return (unsigned int)blocks * tpcs * gpu.topology->sms_per_tpc;
}

static struct tpcset run_cooperative(unsigned int tpcs)
{
	gpu_check(gpu_launch_cooperative(&gpu, room_on(tpcs)));
	gpu_check(cuCtxSynchronize());
	return gpu_read_tpcs(&gpu, gpu.output, room_on(tpcs));
}

static void assert_cooperative_runs_in(unsigned int tpcs, struct tpcset set)
{
	struct tpcset ran = run_cooperative(tpcs);

	gpu_assert_equal(&ran, &set);
}

static void run_in_half(void)
{
	assert_runs_in(&gpu, range(0, 3));
	assert_cooperative_runs_in(4, range(0, 3));
}

static void run_cooperatively_in_all(void)
{
	assert_cooperative_runs_in(8, range(0, 7));
}

static void run_cooperatively(void)
{
	be_lower(timed_open_gpu);
	have(range(0, 7));
	want(range(4, 11));
	assert_comes_to_run_in(&gpu, range(0, 3));
	/* Who steps aside waits for nobody; who cannot does. */
	assert_is_never_held(run_in_half);
	assert_comes_to_be_held(run_cooperatively_in_all);
	/* It has all of the partition. */
	assert_cooperative_runs_in(8, range(0, 7));
	assert_cooperative_runs_in(4, range(0, 3));
	assert_runs_in(&gpu, range(0, 3));
	assert_nothing_is_said();
	/* And what the partition cannot hold is widened, as ever. */
	struct tpcset ran = run_cooperative(9);

	assert_true(tpcset_count(&ran) >= 9);
	assert_int_equal(reason(SEGMENT_WIDENED), 1);
}

static void run_cooperatively_on_whole_gpu(void)
{
	be_lower(timed_open_gpu);
	unsigned int count = gpu.topology->tpc_count;
	struct tpcset all = gpu_all(&gpu), theirs = range(3, 5);

	want(theirs);
	assert_comes_to_run_in(&gpu, tpcset_without(&all, &theirs));
	uint64_t restricted = gpu_counters().restricted;

	assert_cooperative_runs_in(count, all);
	assert_int_equal(gpu_counters().restricted, restricted);
	assert_cooperative_runs_in(count - 3, tpcset_without(&all, &theirs));
	assert_nothing_is_said();
}

/* With --on-misfit fail. */
static void refuse_nothing_that_fits(void)
{
	setenv("NVTASKSET_ON_MISFIT", "fail", 1);
	run_cooperatively_on_whole_gpu();
	have(range(0, 7));
	want(range(3, 11));
	assert_comes_to_run_in(&gpu, range(0, 2));
	assert_cooperative_runs_in(8, range(0, 7));
	assert_int_equal(gpu_launch_cooperative(&gpu, room_on(9)), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	assert_int_equal(reason(SEGMENT_REFUSED), 1);
}

/* One cluster of two TPCs of one group. */
static void run_clusters(void)
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
	assert_comes_to_run_in(&gpu, first);
	gpu_where_clusters(&gpu, gpu.topology->sms_per_tpc, 64, sms);
	for (int i = 0; i < 64; i++)
		assert_true(tpcset_has(&first, sms[i] / gpu.topology->sms_per_tpc));
	gpu_where_clusters(&gpu, 2 * gpu.topology->sms_per_tpc, 64, sms);
	for (int i = 0; i < 64; i++)
		assert_true(tpcset_has(&pair, sms[i] / gpu.topology->sms_per_tpc));
	assert_nothing_is_said();
}

TIMED_TEST(test_cooperative, timed_run_and_pass, run_cooperatively)
TIMED_TEST(test_cooperative_on_whole_gpu, timed_run_and_pass, run_cooperatively_on_whole_gpu)
TIMED_TEST(test_refused, timed_run_and_pass, refuse_nothing_that_fits)
TIMED_TEST(test_clusters, timed_run_and_pass, run_clusters)

/* On the whole GPU, they are nothing to be said: the same launch would stay as it is. */
static void leave_unknown_descriptors(void)
{
	be_lower(timed_open_gpu);
	struct tpcset all = gpu_all(&gpu), theirs = range(3, 5);

	want(theirs);
	assert_comes_to_run_in(&gpu, tpcset_without(&all, &theirs));
	setenv("SIM_FAULTS", "bad-qmd", 1);
	assert_runs_in(&gpu, all);
	assert_nothing_is_said();
	have(range(0, 7));
	gpu_run(&gpu);
	assert_int_equal(reason(SEGMENT_UNKNOWN_QMD), 1);
}

TIMED_TEST(test_unknown_descriptors, timed_run_on_simulator, leave_unknown_descriptors)

/* --- graphs --------------------------------------------------------------------------------------------------------- */

static void assert_graph_comes_to_run_in(CUgraphExec exec, struct tpcset set)
{
	double end = timed_now_s() + PATIENCE_S;
	struct tpcset ran;

	do {
		graph_launch(exec);
		ran = graph_ran(0);
	} while (!tpcset_equal(&ran, &set) && timed_now_s() < end);
	graph_assert_ran(exec, NODES, &set);
}

static void step_aside_with_graphs(void)
{
	be_lower(open_for_graphs);
	have(range(0, 7));
	CUgraphExec exec = graph_instantiate(graph_make());

	assert_graph_comes_to_run_in(exec, range(0, 7));
	want(range(4, 11));
	assert_graph_comes_to_run_in(exec, range(0, 3));
	want_nothing();
	assert_graph_comes_to_run_in(exec, range(0, 7));
	assert_nothing_is_said();
}

static void step_aside_with_graphs_on_whole_gpu(void)
{
	be_lower(open_for_graphs);
	struct tpcset all = gpu_all(&gpu), theirs = range(4, 11);
	CUgraphExec exec = graph_instantiate(graph_make());

	assert_graph_comes_to_run_in(exec, all);
	want(theirs);
	assert_graph_comes_to_run_in(exec, tpcset_without(&all, &theirs));
	want_nothing();
	assert_graph_comes_to_run_in(exec, all);
	assert_nothing_is_said();
}

/* Its nodes are out of reach: they stay in the partition, and this is nothing to be said. */
static void stay_with_lost_nodes(void)
{
	CUgraphNode node;

	be_lower(open_for_graphs);
	have(range(0, 7));
	assert_comes_to_run_in(&gpu, range(0, 7));
	CUgraphExec exec = graph_instantiate(gpu_wrap_graph(graph_make(), &node));

	graph_assert_ran(exec, NODES, &(struct tpcset){{0xff}});
	gpu_check(cuGraphDestroyNode(node));
	want(range(4, 11));
	assert_comes_to_run_in(&gpu, range(0, 3));
	graph_assert_ran(exec, NODES, &(struct tpcset){{0xff}});
	assert_nothing_is_said();
	/* After an edit it is. */
	have(range(0, 6));
	graph_launch(exec);
	assert_int_equal(graph_stale(), NODES);
}

TIMED_TEST(test_graphs, timed_run_and_pass, step_aside_with_graphs)
TIMED_TEST(test_graphs_on_whole_gpu, timed_run_and_pass, step_aside_with_graphs_on_whole_gpu)
TIMED_TEST(test_lost_nodes, timed_run_and_pass, stay_with_lost_nodes)

/* --- masks of the driver's and the program's own --------------------------------------------------------------------- */

/* The mask that leaves just these TPCs. */
static uint128_t only(struct tpcset set)
{
	return ~((uint128_t)set.words[1] << 64 | set.words[0]);
}

static void step_aside_with_masks(void)
{
	be_lower(timed_open_gpu);
	have(range(0, 7));
	assert_comes_to_run_in(&gpu, range(0, 7));
	assert_int_equal(libsmctrl_set_global_mask_ext(only(range(2, 5))), 0);
	assert_runs_in(&gpu, range(2, 5));
	want(range(4, 11));
	assert_comes_to_run_in(&gpu, range(2, 3));
	/* What the mask holds, but not what is left of it. */
	assert_cooperative_runs_in(4, range(2, 5));
	/* Nothing is left of the mask. */
	assert_int_equal(libsmctrl_set_global_mask_ext(only(range(5, 6))), 0);
	assert_comes_to_run_in(&gpu, range(0, 3));
	assert_nothing_is_said();
	want_nothing();
	assert_comes_to_run_in(&gpu, range(5, 6));
	assert_nothing_is_said();
}

static struct tpcset first_of(struct tpcset set, unsigned int count)
{
	struct tpcset first = {{0}};

	for (unsigned int tpc = tpcset_next(&set, 0); count > 0; count--, tpc = tpcset_next(&set, tpc + 1))
		tpcset_add(&first, tpc);
	return first;
}

static void need_green_contexts(void)
{
	gpu_load_driver();
	if (!cuGreenCtxCreate)
		timed_leave_out("this driver has no green contexts");
}

static void step_aside_with_green_contexts(void)
{
	need_green_contexts();
	be_lower(timed_open_gpu);
	green_enter();
	struct tpcset all = gpu_all(&gpu), half = first_of(green.tpcs, 4), rest = tpcset_without(&all, &green.tpcs);

	want(half);
	assert_comes_to_run_in(&green.inside, tpcset_without(&green.tpcs, &half));
	/* Nothing of it is left. */
	want(green.tpcs);
	assert_comes_to_run_in(&green.inside, rest);
	assert_nothing_is_said();
	want_nothing();
	assert_comes_to_run_in(&green.inside, green.tpcs);
	assert_nothing_is_said();
	/* It lies outside of the partition, too. */
	have(rest);
	half = first_of(rest, 4);
	rest = tpcset_without(&rest, &half);
	want(half);
	assert_comes_to_run_in(&green.inside, rest);
	uint64_t overruled = reason(SEGMENT_GREEN_CONTEXT);

	assert_runs_in(&green.inside, rest);
	assert_int_equal(reason(SEGMENT_GREEN_CONTEXT), overruled + 1);
}

TIMED_TEST(test_masks, timed_run_and_pass, step_aside_with_masks)
TIMED_TEST(test_green_contexts, timed_run_and_pass, step_aside_with_green_contexts)

/* --- all the time ----------------------------------------------------------------------------------------------------- */

#define THREADS 3

static atomic_bool has_ended;
static struct tpcset partition;

/* Returns how many launches ran outside of the partition. */
static void *launch_plainly(void *unused)
{
	uintptr_t strays = 0;
	CUdeviceptr output;
	CUstream stream;

	(void)unused;
	gpu_check(cuCtxSetCurrent(gpu.context));
	output = gpu_new_output(&gpu);
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	while (!atomic_load(&has_ended)) {
		struct tpcset ran = gpu_where_into(&gpu, stream, output);

		strays += !tpcset_is_subset(&ran, &partition);
	}
	return (void *)strays;
}

static void *launch_graphs(void *unused)
{
	uintptr_t strays = 0;

	(void)unused;
	gpu_check(cuCtxSetCurrent(gpu.context));
	CUgraphExec exec = graph_instantiate(graph_make());

	while (!atomic_load(&has_ended)) {
		gpu_check(cuGraphLaunch(exec, NULL));
		gpu_check(cuStreamSynchronize(NULL));
		struct tpcset ran = graph_ran(0);

		strays += !tpcset_is_subset(&ran, &partition);
	}
	return (void *)strays;
}

static void *launch_cooperatively(void *unused)
{
	uintptr_t strays = 0;

	(void)unused;
	gpu_check(cuCtxSetCurrent(gpu.context));
	for (unsigned int tpcs = 1; !atomic_load(&has_ended); tpcs = tpcs % 8 + 1) {
		struct tpcset ran = run_cooperative(tpcs);

		strays += !tpcset_is_subset(&ran, &partition);
	}
	return (void *)strays;
}

/* The higher one wants other TPCs each few milliseconds. */
static void launch_while_it_changes(void)
{
	void *(*const launches[THREADS])(void *) = {launch_plainly, launch_graphs, launch_cooperatively};
	pthread_t threads[THREADS];
	unsigned int seed = 5;
	void *strays;

	be_lower(open_for_graphs);
	partition = range(0, 7);
	have(partition);
	assert_comes_to_run_in(&gpu, partition);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launches[i], NULL), 0);
	for (double end = timed_now_s() + 2; timed_now_s() < end; timed_sleep_ms(rand_r(&seed) % 8))
		want((struct tpcset){{(uint64_t)rand_r(&seed) % 0x10000 & (uint64_t)rand_r(&seed)}});
	atomic_store(&has_ended, true);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &strays);
		assert_null(strays);
	}
	want_nothing();
	assert_comes_to_run_in(&gpu, partition);
	assert_nothing_is_said();
}

TIMED_TEST(test_changes, timed_run_and_pass, launch_while_it_changes)

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_program),
		TEST(test_aside_and_back),
		TEST(test_whole_gpu),
		TEST(test_another_partition),
		TEST(test_nothing_is_left),
		TEST(test_edits),
		TEST(test_first_launch),
		TEST(test_higher_dies),
		TEST(test_highest),
		TEST(test_cooperative),
		TEST(test_cooperative_on_whole_gpu),
		TEST(test_refused),
		TEST(test_clusters),
		TEST(test_unknown_descriptors),
		TEST(test_graphs),
		TEST(test_graphs_on_whole_gpu),
		TEST(test_lost_nodes),
		TEST(test_masks),
		TEST(test_green_contexts),
		TEST(test_changes),
	};

	live_alone();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
