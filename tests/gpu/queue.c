/*
 * Changes of the masks of waiting launches (src/driver/pushbuffer/queue.h, launch/queued.h), on the driver at hand: the
 * same under MPS, where CUDA_MPS_PIPE_DIRECTORY names a daemon.
 *
 * Runs without nvtaskset, since the test has its own callback.
 *
 * runs: bare
 * link: process.a
 */
#include "../cases.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/hook.h"
#include "driver/pushbuffer/queue.h"
#include "driver/releases.h"
#include "launch/account/account.h"
#include "launch/queued.h"
#include "launch/timestamps/timestamps.h"
#include "state/kernels/timestamps_layout.h"
#include "state/segment/owner.h"
#include "support/first_gpu.h"
#include "support/timed.h"

#include <inttypes.h>

#define TIMES_AT ((void *)0x20000000) /* where the releases of a descriptor reach */
#define TIMES_BYTES sizeof(struct timestamps)
#define PAGE 4096
#define LAUNCHES_MAX 8192
#define NARROW_TPCS 4
#define SHORT 200000
#define LONG (800 * 1000000) /* longer than all that a test does meanwhile */

static struct gpu own_gpu;
static struct releases releases;
static struct qmd_mask all, narrow;
static CUdeviceptr outputs;
static CUstream stream;
static unsigned int launches, noted;
static bool has_stamps, is_traced, is_overtaken;
static bool has_own_mask, is_green; /* the next launch: the program's own mask, or the driver's, leaves less */
static struct fitted fitted;
static struct segment segment;
static void *commands_page; /* of the last submission */

/* The launches of the test. */
static struct launched {
	struct launch_end end;
	uint64_t turn;
	bool is_noted, is_behind_unknown;
} launched[LAUNCHES_MAX];

/* --- the library's part ----------------------------------------------------------------------------------------- */

static void on_launch(struct launch *launch)
{
	const struct qmd_change change = {.disable = is_green ? &narrow : &all, .is_exact = true};
	bool is_on;

	launch->frame.recent.gpu = &own_gpu;
	launch->frame.recent.mask = all;
	launch->frame.recent.has_own_mask = has_own_mask;
	launch->frame.fitted = fitted;
	launch->gpu = &own_gpu;
	launch->releases = &releases;
	if (is_traced)
		assert_int_equal(qmd_release(&releases.stamping, launch->qmd), QMD_RELEASES);
	qmd_write(own_gpu.family, launch->qmd, &change, NULL);
	queued_launch(launch, has_stamps ? timestamps_of_launch(launch, 0, &is_on)
	                                 : (struct timestamps_cell){.number = 0});
	if (is_overtaken)
		qmd_restore_slot(&releases.stamping, launch->qmd, &(const struct qmd_saved_slot){.control = 0});
	launch->frame.cookie = launches + 1;
	if (launch->frame.stream)
		launched[launches % LAUNCHES_MAX].end = launch->frame.end;
}

static void on_call_ended(const struct call *call)
{
	struct launched *last = &launched[launches % LAUNCHES_MAX];

	if (calls_launch(call->id)) {
		last->turn = call->frame->turn;
		last->is_noted = call->frame->is_noted;
		last->is_behind_unknown = call->frame->is_behind_unknown;
	}
}

static void ignore(void)
{
}

static void on_context(CUcontext context)
{
	queue_context_created();
}

static void ignore_module(const void *cubin, size_t size)
{
}

static void on_submission(struct launch *last, const struct submission *submission)
{
	commands_page = (char *)submission->commands - (uintptr_t)submission->commands % PAGE;
	queued_submits(last, submission);
}

static unsigned int wants_call(int id)
{
	return queued_wants_call(id);
}

static const struct hook_events events = {
	.launch = on_launch, .subscribed = ignore, .context_created = on_context,
	.context_destroyed = queue_forget_context, .submits = on_submission, .module_loaded = ignore_module,
	.wants_call = wants_call, .call_begins = queued_call_begins, .call_ended = on_call_ended,
	.waits = ignore, .subscribed_late = ignore,
};

static bool subscribe(void)
{
	struct segment_revision none = {.count = 0};
	struct error error;

	assert_int_equal(segment_create(&segment, &none, NULL, -1, -1, NULL), 0);
	account_use(&segment);
	assert_int_equal(driver_resolve("libcuda.so.1", &error), 0);
	assert_int_equal(hook_subscribe(&events, &error), HOOK_SUBSCRIBED);
	return queued_want(true, &error);
}

static uint64_t counted(enum segment_reason reason)
{
	struct segment_counters counters;

	segment_read_counters(&segment, &counters);
	return counters.reasons[reason];
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

static void prepare_masks(void)
{
	struct tpcset every = gpu_all(&gpu), few = gpu_range(0, NARROW_TPCS - 1);

	memset(&all, 0, sizeof all);
	topology_disable_mask(gpu.topology, &few, narrow.words, QMD_MASK_BITS);
	topology_disable_mask(gpu.topology, &every, own_gpu.present.words, QMD_MASK_BITS);
	for (unsigned int i = 0; i < COUNT_OF(own_gpu.present.words); i++)
		own_gpu.present.words[i] = ~own_gpu.present.words[i];
}

/* The memory stays; each context registers it. */
static void prepare_times(void)
{
	struct timestamps *times = releases.timestamps;

	if (!times)
		times = mmap(TIMES_AT, TIMES_BYTES, PROT_READ | PROT_WRITE,
		             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(times, TIMES_AT);
	gpu_check(cuMemHostRegister_v2(times, TIMES_BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
	releases = (struct releases){.timestamps = times, .timestamps_at = (uintptr_t)timestamps_cells(times)};
	assert_true(qmd_release_prepare(&releases.stamping, own_gpu.family, QMD_STAMPING_SLOT, QMD_STAMPS,
	                                releases.timestamps_at, 0));
}

static void begin(void)
{
	gpu_initialise();
	if (!subscribe())
		timed_leave_out("launches that wait cannot be changed here");
}

static void open_context(void)
{
	gpu_open(&gpu, 0);
	own_gpu = (struct gpu){.topology = gpu.topology, .has_masks = true};
	own_gpu.family = gpu.topology ? qmd_family_for(gpu.topology->compute_major, gpu.topology->compute_minor) : NULL;
	if (!own_gpu.family || qmd_release_reach(own_gpu.family) == 0)
		timed_leave_out("this GPU's launch descriptors have no slot that can do that");
	prepare_masks();
	prepare_times();
	gpu_check(cuMemAlloc_v2(&outputs, sizeof(uint32_t) * gpu.sm_count * LAUNCHES_MAX));
	memset(launched, 0, sizeof launched);
	launches = noted = 0;
	has_stamps = true;
	stream = gpu_stream_of_case();
}

static void open_gpu(void)
{
	begin();
	open_context();
}

/* --- launching -------------------------------------------------------------------------------------------------- */

static CUdeviceptr output_of(unsigned int number)
{
	return outputs + sizeof(uint32_t) * gpu.sm_count * (number % LAUNCHES_MAX);
}

static void launch_with(CUstream into, uint64_t cycles, CUlaunchAttribute *attribute)
{
	CUdeviceptr output = output_of(launches);
	CUlaunchConfig config = gpu_config(gpu.sm_count, 64, into);
	void *parameters[] = {&output, &cycles};

	config.attrs = attribute;
	config.numAttrs = attribute != NULL;
	gpu_check(cuLaunchKernelEx(&config, gpu.where, parameters, NULL));
	noted += launched[launches++ % LAUNCHES_MAX].is_noted;
}

static void launch(CUstream into, uint64_t cycles)
{
	launch_with(into, cycles, NULL);
}

static bool last_is_noted(void)
{
	return launched[(launches - 1) % LAUNCHES_MAX].is_noted;
}

static bool last_is_behind_unknown(void)
{
	return launched[(launches - 1) % LAUNCHES_MAX].is_behind_unknown;
}

static bool launch_is_noted(void)
{
	launch(stream, SHORT);
	return last_is_noted();
}

static bool has_ended(unsigned int number)
{
	struct launch_end end = launched[number % LAUNCHES_MAX].end;

	return __atomic_load_n(end.at, __ATOMIC_ACQUIRE) >= end.number;
}

static unsigned int sms_of(unsigned int number)
{
	uint32_t sms[2 * TPCSET_MAX];
	bool seen[4 * TPCSET_MAX] = {false};
	unsigned int distinct = 0;

	gpu_check(cuMemcpyDtoH_v2(sms, output_of(number), sizeof(uint32_t) * gpu.sm_count));
	for (unsigned int i = 0; i < gpu.sm_count; i++) {
		assert_true(sms[i] < COUNT_OF(seen));
		distinct += !seen[sms[i]];
		seen[sms[i]] = true;
	}
	return distinct;
}

static bool was_narrow(unsigned int number)
{
	return sms_of(number) <= NARROW_TPCS * gpu.topology->sms_per_tpc;
}

/* --- visitors --------------------------------------------------------------------------------------------------- */

static enum queue_answer make_narrow(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	*disable = narrow;
	return QUEUE_CHANGE;
}

static enum queue_answer make_wide(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	*disable = all;
	return QUEUE_CHANGE;
}

static unsigned int visits;

/* Makes two narrow. All launches of the test are in a single stream. */
static enum queue_answer make_two_narrow(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	visits++;
	assert_int_equal(queued->ahead, visits);
	assert_int_equal(queued->cookie, visits + 1);
	assert_int_equal(queued->turn, launched[visits].turn);
	assert_memory_equal(&queued->noted, &all, sizeof all);
	*disable = narrow;
	return visits <= 2 ? QUEUE_CHANGE : QUEUE_STOP;
}

static atomic_bool is_over;
static _Atomic uint64_t changes;

/* A test prepares `narrow` again with each context: the thread has a copy. */
struct toss {
	uint64_t state;
	struct qmd_mask narrow;
};

/* Each launch gets the mask of the note or the narrow one, by chance. */
static enum queue_answer toss(void *data, const struct queued *launch, struct qmd_mask *disable)
{
	struct toss *by = data;

	by->state = by->state * UINT64_C(6364136223846793005) + 1;
	*disable = by->state >> 63 ? launch->noted : by->narrow;
	return QUEUE_CHANGE;
}

static void *change_all_the_time(void *by)
{
	while (!atomic_load(&is_over)) {
		int changed = queue_walk(true, toss, by);

		changes += changed > 0 ? (unsigned int)changed : 0;
	}
	return NULL;
}

static pthread_t start_changes(void)
{
	static struct toss by;

	by = (struct toss){.state = 1, .narrow = narrow};
	atomic_store(&is_over, false);
	return thread_start(change_all_the_time, &by);
}

/* --- the program's end ------------------------------------------------------------------------------------------ */

/* As the driver's own function for the end may do. */
static void take_commands_away(void)
{
	mprotect(commands_page, PAGE, PROT_READ);
	timed_sleep_ms(20);
}

TIMED(a_program_ends_in_the_middle)
{
	begin();
	atexit(take_commands_away);
	open_context();
	pthread_detach(start_changes());
	launch(stream, LONG);
	launch(stream, SHORT);
	while (atomic_load(&changes) == 0)
		;
}

/* --- what waits ------------------------------------------------------------------------------------------------- */

#define QUEUE 40
#define COMMITTED_AT_MOST 17

static void fill_queue(void)
{
	launch(stream, LONG);
	for (unsigned int i = 0; i < QUEUE; i++)
		launch(stream, SHORT);
}

TIMED(what_waits_is_changed)
{
	open_gpu();
	fill_queue();
	assert_int_equal(noted, QUEUE);
	assert_int_equal(queue_walk(true, make_narrow, NULL), QUEUE);
	assert_int_equal(queue_walk(true, make_wide, NULL), QUEUE);
	assert_int_equal(queue_walk(true, make_narrow, NULL), QUEUE);
	assert_false(has_ended(0));
	gpu_check(cuCtxSynchronize());
	assert_false(was_narrow(0));
	for (unsigned int i = COMMITTED_AT_MOST; i <= QUEUE; i++)
		assert_true(was_narrow(i));
	timed_wait_until(has_ended(QUEUE));
	assert_int_equal(queue_walk(true, make_wide, NULL), 0);
}

TIMED(a_walk_begins_with_the_oldest_and_can_be_stopped)
{
	open_gpu();
	fill_queue();
	visits = 0;
	assert_int_equal(queue_walk(true, make_two_narrow, NULL), 2);
	assert_int_equal(visits, 3);
	assert_false(has_ended(0));
}

/* Masks that the program has asked for. The mask of a launch behind may be changed again. */
TIMED(what_is_limited_keeps_its_mask)
{
	open_gpu();
	launch(stream, LONG);
	has_own_mask = true;
	assert_false(launch_is_noted());
	has_own_mask = false;
	is_green = true;
	assert_false(launch_is_noted());
	is_green = false;
	assert_true(launch_is_noted());
	assert_int_equal(queue_walk(true, make_wide, NULL), 1);
	assert_false(has_ended(0));
}

static bool pair_is_noted(void)
{
	CUlaunchAttribute pairs = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}};

	launch_with(stream, SHORT, &pairs);
	return last_is_noted();
}

/* The driver gives clusters a mask of its own. Only the last decision knows whether a green context leaves less. */
TIMED(clusters_in_a_green_context_keep_their_mask)
{
	open_gpu();
	if (gpu.topology->compute_major < 9)
		timed_leave_out("this GPU has no clusters");
	launch(stream, LONG);
	is_green = true;
	assert_false(pair_is_noted());
	fitted = (struct fitted){.cluster = 2};
	assert_true(pair_is_noted());
	fitted.has_own_mask = true;
	assert_false(pair_is_noted());
	assert_false(has_ended(0));
}

/* The end of the launch ahead is enough: the launch may not have begun. */
TIMED(what_may_have_started_is_not_visited)
{
	open_gpu();
	launch(stream, SHORT);
	launch(stream, LONG);
	launch(stream, SHORT);
	timed_wait_until(has_ended(0));
	assert_int_equal(queue_walk(true, make_narrow, NULL), 1);
	assert_false(has_ended(1));
	gpu_check(cuCtxSynchronize());
	assert_false(was_narrow(1));
}

TIMED(what_starts_at_once_is_not_noted)
{
	open_gpu();
	for (unsigned int i = 0; i < 5; i++) {
		launch(stream, SHORT);
		gpu_check(cuCtxSynchronize());
		timed_wait_until(has_ended(i));
		assert_int_equal(last_is_behind_unknown(), i == 0);
	}
	assert_int_equal(noted, 0);
}

/* --- a full ring -------------------------------------------------------------------------------------------------- */

#define OVERFILLING 1100 /* a ring has 1024 entries */

static atomic_bool has_filled;

static void *overfill(void *unused)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	for (unsigned int i = 0; i < OVERFILLING; i++)
		launch(stream, 0);
	atomic_store(&has_filled, true);
	return NULL;
}

/* A call that waits for room holds up no change. */
TIMED(a_full_ring)
{
	open_gpu();
	launch(stream, LONG);
	pthread_t thread = thread_start(overfill, NULL);

	while (queue_walk(true, make_narrow, NULL) < 900)
		;
	assert_false(has_ended(0));
	assert_false(atomic_load(&has_filled));
	pthread_join(thread, NULL);
	gpu_check(cuCtxSynchronize());
	for (unsigned int i = COMMITTED_AT_MOST; i < 900; i++)
		assert_true(was_narrow(i));
}

/* --- what is not known ------------------------------------------------------------------------------------------ */

TIMED(behind_an_unknown_end_nothing_is_noted)
{
	open_gpu();
	launch(stream, SHORT);
	timed_wait_until(has_ended(0));
	has_stamps = false;
	launch(stream, LONG);
	has_stamps = true;
	assert_false(launch_is_noted());
	assert_true(last_is_behind_unknown());
	assert_true(launch_is_noted());
}

static void fill(void)
{
	gpu_check(cuMemsetD8_v2(outputs, 0, 64));
}

static void fill_by_kernel(void)
{
	gpu_check(cuMemsetD8_v2(outputs, 0, 65536));
}

static void copy(void)
{
	static char from[4096];

	gpu_check(cuMemcpyHtoDAsync_v2(outputs, from, sizeof from, stream));
}

static void call_host(void *data)
{
}

static void call_host_function(void)
{
	gpu_check(cuLaunchHostFunc(stream, call_host, NULL));
}

static void wait_for_word(void)
{
	_Atomic uint64_t *word = &releases.timestamps->gaps;

	atomic_store(word, 1);
	gpu_check(cuStreamWaitValue32_v2(stream, (uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_EQ));
}

/* A launch that runs is ahead of fills and copies too. Fills go into the legacy stream, and the simulated GPU waits for
 * the end of a fill. */
TIMED(behind_other_work)
{
	static const struct {
		const char *what;
		void (*act)(void);
		bool may_wait; /* for any time */
	} others[] = {{"a fill", fill, false},
	              {"a large fill", fill_by_kernel, false},
	              {"a copy", copy, false},
	              {"a function of the host", call_host_function, true},
	              {"a wait for a value", wait_for_word, true}};

	open_gpu();
	for (unsigned int i = 0; i < COUNT_OF(others); i++) {
		ROW("%s", others[i].what);
		launch(stream, LONG / 8);
		launch(stream, LONG / 8);
		assert_true(last_is_noted());
		others[i].act();
		bool is_behind = !others[i].may_wait && !has_ended(launches - 1);

		assert_int_equal(launch_is_noted(), is_behind);
		assert_int_equal(last_is_behind_unknown(), !is_behind);
		launch(stream, LONG / 8);
		assert_true(launch_is_noted());
		gpu_check(cuCtxSynchronize());
	}
}

/* A launch behind the wait is noted as long as the launch ahead has not ended. Later the launch may wait for any
 * time. */
TIMED(behind_a_wait_for_an_event)
{
	CUevent event;

	open_gpu();
	gpu_check(cuEventCreate(&event, 0));
	gpu_check(cuEventRecord(event, NULL));
	launch(stream, LONG);
	gpu_check(cuStreamWaitEvent(stream, event, 0));
	assert_true(launch_is_noted());
	gpu_check(cuCtxSynchronize());
	timed_wait_until(has_ended(1));
	gpu_check(cuStreamWaitEvent(stream, event, 0));
	assert_false(launch_is_noted());
	assert_true(last_is_behind_unknown());
	gpu_check(cuEventDestroy_v2(event));
}

TIMED(what_begins_early_is_not_noted)
{
	CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
	                           .value.programmaticStreamSerializationAllowed = 1};

	open_gpu();
	if (gpu.topology->compute_major < 9)
		timed_leave_out("programmatic dependent launch needs compute capability 9.0");
	launch(stream, LONG);
	assert_true(launch_is_noted());
	launch_with(stream, SHORT, &early);
	assert_false(last_is_noted());
	assert_int_equal(counted(SEGMENT_QUEUE_EARLY), 1);
	assert_true(launch_is_noted());
	early.value.programmaticStreamSerializationAllowed = 0;
	launch_with(stream, SHORT, &early);
	assert_true(last_is_noted());
}

TIMED(what_a_profiler_traces_is_not_noted)
{
	open_gpu();
	launch(stream, LONG);
	assert_true(launch_is_noted());
	is_traced = true;
	assert_false(launch_is_noted());
	assert_int_equal(counted(SEGMENT_QUEUE_SLOT), 1);
	is_traced = false;
	is_overtaken = true;
	assert_false(launch_is_noted());
	assert_int_equal(counted(SEGMENT_QUEUE_SLOT), 2);
	is_overtaken = false;
	assert_true(launch_is_noted());
}

/* The end of the launch with the cell would be written over the end of the next launch. */
TIMED(a_cell_whose_launch_has_not_ended)
{
	open_gpu();
	launch(stream, LONG);
	assert_true(launch_is_noted());
	atomic_store(&releases.timestamps->launches, TIMESTAMPS_CELLS);
	assert_false(launch_is_noted());
	assert_false(launch_is_noted());
	gpu_check(cuCtxSynchronize());
	atomic_store(&releases.timestamps->launches, 2 * TIMESTAMPS_CELLS);
	launch(stream, LONG);
	assert_true(launch_is_noted());
}

/* The driver announces a part of the commands, without the descriptor. */
TIMED_WITH(NULL, NULL, timed_run_on_simulator, a_driver_with_another_layout)
{
	setenv("SIM_FAULTS", "odd-segments", 1);
	open_gpu();
	fill_queue();
	assert_int_equal(noted, 0);
	assert_true(counted(SEGMENT_QUEUE_LAYOUT) > 0);
	assert_int_equal(queue_walk(true, make_narrow, NULL), 0);
}

TIMED_WITH(NULL, NULL, timed_run_on_simulator, a_driver_that_announces_nothing)
{
	setenv("SIM_FAULTS", "no-segments", 1);
	gpu_initialise();
	assert_false(subscribe());
	assert_int_equal(counted(SEGMENT_QUEUE_UNANNOUNCED), 1);
	assert_int_equal(counted(SEGMENT_QUEUE_NO_SEQUENCES), 0);
}

static void *launch_long(void *unused)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	launch(CU_STREAM_PER_THREAD, LONG);
	launch(CU_STREAM_PER_THREAD, LONG);
	return last_is_noted() ? &launches : NULL;
}

static void *launch_short(void *unused)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	launch(CU_STREAM_PER_THREAD, SHORT);
	return unused;
}

/* A new thread often has the memory of the thread before, and never the stream. */
TIMED(streams_of_two_threads)
{
	void *is_noted;

	open_gpu();
	assert_int_equal(pthread_join(thread_start(launch_long, NULL), &is_noted), 0);
	assert_non_null(is_noted);
	copy();
	assert_int_equal(pthread_join(thread_start(launch_short, NULL), NULL), 0);
	assert_false(last_is_noted());
}

static unsigned int launch_into_each(const CUstream *streams, unsigned int count)
{
	unsigned int have_places = 0;

	for (unsigned int i = 0; i < count; i++) {
		launch(streams[i], SHORT);
		have_places += launched[(launches - 1) % LAUNCHES_MAX].turn > 0;
	}
	gpu_check(cuCtxSynchronize());
	return have_places;
}

/* As in a phase without notes. */
TIMED(streams_destroyed_while_nothing_is_noted)
{
	CUstream streams[200];
	unsigned int half = COUNT_OF(streams) / 2, before;
	struct error error;

	open_gpu();
	for (unsigned int i = 0; i < COUNT_OF(streams); i++)
		streams[i] = gpu_new_stream();
	before = launch_into_each(streams, half);
	queued_want(false, &error);
	hook_want_more();
	for (unsigned int i = 0; i < half; i++)
		gpu_check(cuStreamDestroy_v2(streams[i]));
	assert_true(queued_want(true, &error));
	assert_in_range(launch_into_each(streams + half, half), before * 3 / 4, half);
}

/* More streams than there are places are launched into as ever. */
TIMED(more_streams_than_places)
{
	CUstream streams[200];
	unsigned int with_place = 0;

	open_gpu();
	for (unsigned int i = 0; i < COUNT_OF(streams); i++) {
		streams[i] = gpu_new_stream();
		launch(streams[i], SHORT);
		with_place += launched[i].turn > 0;
	}
	assert_in_range(with_place, 30, 64);
	for (unsigned int i = 0; i < COUNT_OF(streams); i++)
		gpu_check(cuStreamDestroy_v2(streams[i]));
	launch(stream, LONG);
	assert_true(launch_is_noted());
}

/* --- ends ------------------------------------------------------------------------------------------------------- */

TIMED(a_destroyed_stream_is_not_changed)
{
	open_gpu();
	CUstream other = gpu_new_stream();

	launch(other, LONG);
	launch(other, SHORT);
	assert_int_equal(queue_walk(true, make_narrow, NULL), 1);
	gpu_check(cuStreamDestroy_v2(other));
	assert_int_equal(queue_walk(true, make_wide, NULL), 0);
}

TIMED(a_destroyed_context_is_not_changed)
{
	CUcontext other = (CUcontext)&own_gpu;

	open_gpu();
	launch(stream, LONG);
	launch(stream, SHORT);
	queue_forget_context(other);
	assert_int_equal(queue_walk(true, make_narrow, NULL), 1);
	queue_forget_context(gpu.context);
	assert_int_equal(queue_walk(true, make_wide, NULL), 0);
	launch(stream, SHORT);
	assert_true(last_is_behind_unknown());
	assert_true(launch_is_noted());
}

/* Without waiting for the launches. Nothing of a context is written once the memory of its commands is gone. */
TIMED(contexts_come_and_go_beside_changes)
{
	open_gpu();
	pthread_t thread = start_changes();

	for (unsigned int i = 0; i < 10; i++) {
		uint64_t before = atomic_load(&changes);

		if (i > 0)
			open_context();
		launch(stream, LONG / 100);
		for (unsigned int j = 0; j < QUEUE; j++)
			launch(stream, SHORT);
		while (!has_ended(QUEUE) && atomic_load(&changes) == before)
			;
		gpu_check(cuCtxDestroy_v2(gpu.context));
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	assert_true(changes > 0);
}

/* The child of a fork has no context, and launches of the parent are none of the child. */
TIMED(a_child_changes_nothing)
{
	int status;

	open_gpu();
	launch(stream, LONG);
	launch(stream, SHORT);
	pid_t child = fork();

	if (child == 0) {
		queue_after_fork();
		_exit(queue_walk(true, make_narrow, NULL) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(queue_walk(true, make_narrow, NULL), 1);
}

/* --- under load ------------------------------------------------------------------------------------------------- */

/* Launches of several streams, whose masks change all the time; the ring goes round. */
TIMED(changes_under_load)
{
	const char *seconds = getenv("QUEUE_SECONDS");
	double end;
	pthread_t thread;
	unsigned int narrowed = 0, looked_at = 0;

	open_gpu();
	CUstream streams[] = {stream, gpu_stream_of_case(), gpu_stream_of_case()};

	thread = start_changes();
	for (end = timed_now_s() + (seconds ? atof(seconds) : 1); timed_now_s() < end; looked_at = launches) {
		for (unsigned int i = 0; i < 1500; i++)
			launch(streams[i / 500], i % 500 ? SHORT / 8 : 10 * SHORT);
		gpu_check(cuCtxSynchronize());
		for (unsigned int i = looked_at; i < launches; i++)
			narrowed += was_narrow(i);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	print_message("# %u launches, %u noted, %" PRIu64 " changes; %u ran narrow\n", launches, noted, changes,
	              narrowed);
	assert_true(changes > 0);
	assert_true(narrowed > 0);
	assert_true(narrowed < launches);
	assert_true(noted > 0);
}

RUN_TESTS(NULL, NULL)
