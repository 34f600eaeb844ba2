/*
 * The room that changes the masks of launches that wait (src/driver/pushbuffer/queue.h), on the driver at hand: the
 * same under MPS, where CUDA_MPS_PIPE_DIRECTORY names a daemon.
 *
 * Runs without nvtaskset, since the callback is the test's own.
 *
 * runs: bare
 * link: process.a
 */
#include "../cases.h"
#include <inttypes.h>
#include "driver/pushbuffer/queue.h"
#include "driver/gpus.h"
#include "support/first_gpu.h"
#include "support/subscriber.h"
#include "support/timed.h"

enum {
	SUBMISSIONS = 0x12,
	SUBMISSION_WRITTEN = 2,
	SUBMISSION_RING = 6
};

#define WORDS 2 /* of a stamp: the number and the time */
#define STAMPS 8192
#define STAMPS_BYTES (STAMPS * WORDS * sizeof(uint64_t))
#define STAMPS_AT ((void *)0x20000000)
#define NARROW_TPCS 4
#define SHORT 200000
#define LONG (800 * 1000000)

static struct gpu own_gpu;
static struct qmd_mask all, narrow;
static CUdeviceptr outputs;
static uint64_t *stamps;
static struct launch current;
static struct submission submitted;
static uint32_t handle;
static atomic_uint launches, outcomes[QUEUE_OUTCOMES];
static bool has_stamps = true;

/* --- the callbacks ---------------------------------------------------------------------------------------- */

static struct launch_end stamp_of(unsigned int number)
{
	return (struct launch_end){&stamps[number % STAMPS * WORDS], has_stamps ? number : 0};
}

static void upload(const uint64_t *words)
{
	struct launch_end end = stamp_of(launches + 1);
	struct qmd_release stamp;

	current.context = pointer(words[1]);
	current.function = pointer(words[3]);
	current.qmd = pointer(words[4]);
	current.gpu = &own_gpu;
	assert_true(qmd_release_prepare(&stamp, own_gpu.family, QMD_STAMPING_SLOT, QMD_STAMPS, (uintptr_t)end.at,
	                                end.number));
	qmd_write(own_gpu.family, current.qmd,
	          &(struct qmd_change){.disable = &all, .is_exact = true, .stamping = has_stamps ? &stamp : NULL,
	                               .timestamp_at = (uintptr_t)end.at, .timestamp = end.number},
	          NULL);
}

static void on_event(void *user, int domain, int id, const void *parameters)
{
	const uint64_t *words = parameters;

	if (domain == LAUNCHES && id == BEFORE_UPLOAD) {
		upload(words);
	} else if (domain == SUBMISSIONS && id == SUBMISSION_WRITTEN) {
		submitted = (struct submission){pointer(words[1]), pointer(words[2]), (uint32_t)words[3]};
	} else if (domain == SUBMISSIONS && id == SUBMISSION_RING && current.qmd) {
		enum queue_outcome outcome = queue_note(&current, &submitted, stamp_of(launches + 1));

		if (outcome != QUEUE_NOT_FOUND)
			current.qmd = NULL;
		outcomes[outcome]++;
	}
}

/* --- launching ------------------------------------------------------------------------------------------------ */

static void prepare_masks(void)
{
	struct tpcset every = gpu_all(&gpu), few = gpu_range(0, NARROW_TPCS - 1);

	memset(&all, 0, sizeof all);
	topology_disable_mask(gpu.topology, &few, narrow.words, QMD_MASK_BITS);
	topology_disable_mask(gpu.topology, &every, own_gpu.present.words, QMD_MASK_BITS);
	for (unsigned int i = 0; i < COUNT_OF(own_gpu.present.words); i++)
		own_gpu.present.words[i] = ~own_gpu.present.words[i];
}

static void open_gpu(void)
{
	if (!queue_prepare())
		gpu_skip("this machine has no restartable sequences");
	gpu_initialise();
	gpu_check(tool_subscribe(&handle, on_event, NULL));
	gpu_open(&gpu, 0);
	own_gpu = (struct gpu){.topology = gpu.topology};
	own_gpu.family = gpu.topology ? qmd_family_for(gpu.topology->compute_major, gpu.topology->compute_minor) : NULL;
	if (!own_gpu.family || qmd_release_reach(own_gpu.family) == 0)
		gpu_skip("this GPU's launch descriptors have no slot that can do that");
	prepare_masks();
	stamps = mmap(STAMPS_AT, STAMPS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(stamps, MAP_FAILED);
	gpu_check(cuMemHostRegister_v2(stamps, STAMPS_BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
	gpu_check(cuMemAlloc_v2(&outputs, sizeof(uint32_t) * gpu.sm_count * STAMPS));
	gpu_check(tool_enable(1, handle, LAUNCHES, BEFORE_UPLOAD));
	gpu_check(tool_enable(1, handle, SUBMISSIONS, SUBMISSION_WRITTEN));
	gpu_check(tool_enable(1, handle, SUBMISSIONS, SUBMISSION_RING));
	launches = 0;
	has_stamps = true;
	memset(outcomes, 0, sizeof outcomes);
}

FIXTURE(close_gpu)
{
	if (!stamps)
		return;
	gpu_check(cuCtxSynchronize());
	queue_forget_context(gpu.context);
	gpu_destroy_streams();
	gpu_check(tool_unsubscribe(handle));
	gpu_check(cuMemHostUnregister(stamps));
	munmap(stamps, STAMPS_BYTES);
	gpu_check(cuMemFree_v2(outputs));
	gpu_close(&gpu);
	stamps = NULL;
}

static CUdeviceptr output_of(unsigned int number)
{
	return outputs + sizeof(uint32_t) * gpu.sm_count * (number % STAMPS);
}

static void launch(CUstream stream, uint64_t cycles)
{
	CUdeviceptr output = output_of(launches);

	void *parameters[] = {&output, &cycles};

	current.frame.stream = stream ? stream : CU_STREAM_LEGACY;
	gpu_check(cuLaunchKernel(gpu.where, gpu.sm_count, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
	launches++;
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

static bool has_begun_to_end(unsigned int number)
{
	struct launch_end end = stamp_of(number + 1);

	return *end.at >= end.number;
}

static bool make_narrow(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	*disable = narrow;
	return true;
}

static bool make_wide(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	*disable = all;
	return true;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

#define QUEUE 40
#define COMMITTED_AT_MOST 17

TEST_WITH(NULL, close_gpu, what_waits_is_changed)
{
	open_gpu();
	CUstream stream = gpu_stream_of_case();

	launch(stream, LONG);
	for (unsigned int i = 0; i < QUEUE; i++)
		launch(stream, SHORT);
	assert_int_equal(outcomes[QUEUE_NOTED], QUEUE);
	assert_int_equal(outcomes[QUEUE_ALONE], 1);
	assert_int_equal(queue_change(make_narrow, NULL), QUEUE);
	assert_int_equal(queue_change(make_wide, NULL), QUEUE);
	assert_int_equal(queue_change(make_narrow, NULL), QUEUE);
	assert_false(has_begun_to_end(0));
	gpu_check(cuCtxSynchronize());
	assert_false(was_narrow(0));
	for (unsigned int i = COMMITTED_AT_MOST; i <= QUEUE; i++)
		assert_true(was_narrow(i));
	timed_wait_until(has_begun_to_end(QUEUE));
	assert_int_equal(queue_change(make_wide, NULL), 0);
}

TEST_WITH(NULL, close_gpu, what_starts_at_once_is_not_noted)
{
	open_gpu();
	for (unsigned int i = 0; i < 5; i++) {
		launch(NULL, SHORT);
		gpu_check(cuCtxSynchronize());
		timed_wait_until(has_begun_to_end(i));
	}
	assert_int_equal(outcomes[QUEUE_ALONE], 5);
	assert_int_equal(outcomes[QUEUE_NOTED], 0);
}

/* Of a launch whose end is not known, nothing is noted behind it. */
TEST_WITH(NULL, close_gpu, behind_an_unknown_end_nothing_is_noted)
{
	open_gpu();
	has_stamps = false;
	launch(NULL, LONG);
	has_stamps = true;
	launch(NULL, SHORT);
	assert_int_equal(outcomes[QUEUE_NOTED], 0);
	launch(NULL, SHORT);
	assert_int_equal(outcomes[QUEUE_NOTED], 1);
}

TEST_WITH(NULL, close_gpu, a_forgotten_stream_is_not_changed)
{
	open_gpu();
	CUstream stream = gpu_stream_of_case();

	launch(stream, LONG);
	launch(stream, SHORT);
	queue_forget_stream(stream, gpu.context);
	assert_int_equal(queue_change(make_narrow, NULL), 0);
	launch(stream, SHORT);
	assert_int_equal(outcomes[QUEUE_NOTED], 1);
	gpu_check(cuCtxSynchronize());
	for (unsigned int i = 0; i < launches; i++)
		assert_false(was_narrow(i));
}

/* Where the driver lays segments out otherwise, no word is written. */
TEST_WITH(NULL, close_gpu, unknown_segments_are_left_alone)
{
	open_gpu();
	if (!gpu_is_simulated())
		gpu_skip("only a simulated driver lays segments out otherwise on request");
	setenv("SIM_FAULTS", "odd-segments", 1);
	CUstream stream = gpu_stream_of_case();

	launch(stream, LONG);
	launch(stream, SHORT);
	unsetenv("SIM_FAULTS");
	assert_each(outcomes[QUEUE_ALONE], 1, outcomes[QUEUE_NOTED], 0, queue_change(make_narrow, NULL), 0);
	assert_true(outcomes[QUEUE_NOT_FOUND] > 0);
	gpu_check(cuCtxSynchronize());
	for (unsigned int i = 0; i < launches; i++)
		assert_false(was_narrow(i));
}

/* Two streams may have the same place. The first stream keeps the place while launches of the stream wait. */
TEST_WITH(NULL, close_gpu, another_stream_has_the_place)
{
	open_gpu();
	CUstream stream = gpu_stream_of_case();

	launch(stream, LONG);
	launch(stream, SHORT);
	for (unsigned int i = 0; i < 1000 && outcomes[QUEUE_STREAMS] == 0; i++)
		launch(gpu_new_stream(), SHORT); /* until the context ends */
	assert_int_equal(outcomes[QUEUE_STREAMS], 1);
	assert_int_equal(queue_change(make_narrow, NULL), 1);
}

/* The driver has put other commands there. */
TEST_WITH(NULL, close_gpu, memory_that_is_used_again_is_not_written)
{
	open_gpu();
	CUstream stream = gpu_stream_of_case();

	launch(stream, LONG);
	launch(stream, SHORT);
	void *commands = (void *)submitted.commands;
	void *before = malloc(submitted.bytes), *other = malloc(submitted.bytes);

	memcpy(before, commands, submitted.bytes);
	memset(other, 0x5a, submitted.bytes);
	memcpy(commands, other, submitted.bytes);
	assert_int_equal(queue_change(make_narrow, NULL), 0);
	assert_memory_equal(commands, other, submitted.bytes);
	memcpy(commands, before, submitted.bytes);
	free(before);
	free(other);
}

/* --- while a change is under way -------------------------------------------------------------------------------- */

static atomic_bool is_changing, has_forgotten, was_early;

/* Long enough for a thread without patience. */
static bool change_slowly(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	atomic_store(&is_changing, true);
	for (int ms = 0; ms < 100 && !atomic_load(&has_forgotten); ms++)
		usleep(1000);
	atomic_store(&was_early, atomic_load(&has_forgotten));
	return false;
}

static void *change_once(void *data)
{
	queue_change(change_slowly, data);
	return NULL;
}

TEST_WITH(NULL, close_gpu, a_stream_is_forgotten_after_a_change)
{
	open_gpu();
	CUstream stream = gpu_stream_of_case();

	launch(stream, LONG);
	launch(stream, SHORT);
	atomic_store(&is_changing, false);
	atomic_store(&has_forgotten, false);
	pthread_t thread = thread_start(change_once, NULL);

	while (!atomic_load(&is_changing))
		sched_yield();
	queue_forget_stream(stream, gpu.context);
	atomic_store(&has_forgotten, true);
	pthread_join(thread, NULL);
	assert_false(atomic_load(&was_early));
}

/* In the child, no thread changes masks. */
static bool fork_and_forget(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	pid_t child = fork();

	if (child == 0) {
		queue_after_fork();
		queue_forget_context(gpu.context);
		_exit(queue_change(make_narrow, NULL) == 0 ? 0 : 1); /* without our library */
	}
	assert_ends_well(child);
	return false;
}

TEST_WITH(NULL, close_gpu, fork_while_a_change_is_under_way)
{
	open_gpu();
	CUstream stream = gpu_stream_of_case();

	launch(stream, LONG);
	launch(stream, SHORT);
	queue_change(fork_and_forget, NULL);
}

/* --- under load
 * ------------------------------------------------------------------------------------------------------ */

static atomic_bool is_over;
static _Atomic uint64_t changes;

static bool make_random(void *data, const struct queued *queued, struct qmd_mask *disable)
{
	uint64_t *state = data;

	*state = *state * UINT64_C(6364136223846793005) + 1;
	*disable = *state >> 63 ? narrow : all;
	return true;
}

static void *change_all_the_time(void *unused)
{
	uint64_t state = 1;

	while (!atomic_load(&is_over))
		changes += queue_change(make_random, &state);
	return NULL;
}

/* Launches of several streams, whose masks change all the time; the ring goes round. Each runs on one of both masks. */
TEST_WITH(NULL, close_gpu, changes_under_load)
{
	const char *seconds = getenv("QUEUE_SECONDS");
	double end;
	pthread_t thread;
	unsigned int narrowed = 0, looked_at = 0;

	open_gpu();
	CUstream streams[] = {gpu_stream_of_case(), gpu_stream_of_case(), gpu_stream_of_case()};

	atomic_store(&is_over, false);
	thread = thread_start(change_all_the_time, NULL);
	for (end = timed_now_s() + (seconds ? atof(seconds) : 1); timed_now_s() < end; looked_at = launches) {
		for (unsigned int i = 0; i < 1500; i++)
			launch(streams[i / 500], i % 500 ? SHORT / 8 : 10 * SHORT);
		gpu_check(cuCtxSynchronize());
		for (unsigned int i = looked_at; i < launches; i++) {
			unsigned int sms = sms_of(i);

			narrowed += sms <= NARROW_TPCS * gpu.topology->sms_per_tpc;
		}
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	print_message("# %u launches, %u noted, %" PRIu64 " changes; %u ran narrow\n", launches, outcomes[QUEUE_NOTED],
	              changes, narrowed);
	assert_true(changes > 0);
	assert_true(narrowed > 0);
	assert_true(narrowed < launches);
	assert_int_equal(outcomes[QUEUE_STREAMS], 0);
}

RUN_TESTS(NULL, NULL)
