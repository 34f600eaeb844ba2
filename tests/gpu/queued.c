/*
 * Launches that wait in the queue (hardware.md, "Queued launches"): where the driver writes a launch, until when the
 * launch's mask can be changed there, and which segments the GPU has fetched. The same under MPS, where
 * CUDA_MPS_PIPE_DIRECTORY names a daemon.
 *
 * Runs without nvtaskset, since the callback is the test's own.
 *
 * runs: bare
 */
#include "../cases.h"
#include "gpu/qmd.h"
#include "support/first_gpu.h"
#include "support/room.h"
#include "support/subscriber.h"
#include "support/timed.h"

/* The driver's announcements of a segment: written, and the ring has its entry; the ring; the GPU was told. */
enum {
	SEGMENTS = 0x12,
	SEGMENT_WRITTEN = 2,
	SEGMENT_SUBMITTED = 4,
	SEGMENT_RING = 6
};

#define RING_ENTRIES 1024
#define GP_GET (0x2088 / sizeof(uint32_t)) /* from the ring on */
#define GP_PUT (0x208c / sizeof(uint32_t))

/* An entry of the ring (published: clc86f.h, GP_ENTRY). */
#define ENTRY_SYNC (UINT64_C(1) << 63)
#define ENTRY_ADDRESS UINT64_C(0xfffffffffc)
#define ENTRY_BYTES(entry) (((entry) >> 42 & 0x1fffff) * 4)

#define QUEUE 40
#define NARROW_TPCS 4
#define SHORT 200000       /* cycles */
#define LONG  (800 * 1000000) /* longer than anything that the test does meanwhile */

enum sync {
	NO_SYNC,
	SYNC_BEFORE /* the GPU is told of the entry */
};

static const struct qmd_family *family;
static struct qmd_mask narrow;
static CUdeviceptr outputs;
static CUevent first_end;
static enum sync sync_mode;

/* One launch of the test. Its call may announce other segments, too: of what the driver does before it. */
static struct queued {
	uint32_t qmd[QMD_WORDS]; /* as the callback left the descriptor */
	unsigned char *segment;  /* with the descriptor */
	uint32_t bytes, channel;
	void *descriptor;
	_Atomic uint64_t *entry;
	_Atomic uint32_t *userd; /* the ring, in other words */
	uint64_t entry_before;   /* the GPU was told */
	uint32_t put_before, put_after;
	unsigned int descriptors; /* that were found */
} launches[RING_ENTRIES + QUEUE];
static atomic_uint count;
static bool has_descriptor; /* the segment that is announced */

/* --- the callbacks ---------------------------------------------------------------------------------------- */

static void see_segment(struct queued *launch, unsigned char *segment, uint32_t bytes, uint32_t channel)
{
	has_descriptor = false;
	for (uint32_t at = 0; at + sizeof launch->qmd <= bytes; at += sizeof(uint32_t)) {
		if (memcmp(segment + at, launch->qmd, sizeof launch->qmd) == 0) {
			has_descriptor = true;
			launch->descriptors++;
			launch->descriptor = segment + at;
			launch->segment = segment;
			launch->bytes = bytes;
			launch->channel = channel;
		}
	}
}

static void see_ring(struct queued *launch, const uint64_t *ring)
{
	_Atomic uint64_t *entries = pointer(ring[2]);
	_Atomic uint64_t *entry = &entries[ring[1] % RING_ENTRIES];

	if (has_descriptor) {
		launch->entry = entry;
		launch->entry_before = atomic_load(entry);
		launch->userd = pointer(ring[2]);
		launch->put_before = launch->userd[GP_PUT];
	}
	if (sync_mode == SYNC_BEFORE)
		((volatile unsigned char *)entry)[7] = 0x80;
}

static void on_event(void *user, int domain, int id, const void *parameters)
{
	const uint64_t *words = parameters;
	struct queued *launch = &launches[count];

	if (domain == LAUNCHES && id == BEFORE_UPLOAD) {
		const struct qmd_mask none = {{0}};

		qmd_write(family, pointer(words[4]), &(struct qmd_change){.disable = &none, .is_exact = true}, NULL);
		memcpy(launch->qmd, pointer(words[4]), sizeof launch->qmd);
	} else if (domain == SEGMENTS && id == SEGMENT_WRITTEN) {
		see_segment(launch, pointer(words[2]), (uint32_t)words[3], (uint32_t)(words[3] >> 32));
	} else if (domain == SEGMENTS && id == SEGMENT_RING) {
		see_ring(launch, pointer(words[2]));
	} else if (domain == SEGMENTS && id == SEGMENT_SUBMITTED && has_descriptor) {
		launch->put_after = (uint32_t)words[5];
	}
}

/* --- launching ---------------------------------------------------------------------------------------------- */

static uint32_t handle;

static void begin(enum sync sync)
{
	memset(&launches[0], 0, sizeof launches[0]);
	count = 0;
	sync_mode = sync;
}

static void open_gpu(void)
{
	gpu_initialise();
	gpu_check(tool_subscribe(&handle, on_event, NULL));
	gpu_check(tool_enable(1, handle, LAUNCHES, BEFORE_UPLOAD));
	gpu_check(tool_enable(1, handle, SEGMENTS, SEGMENT_WRITTEN));
	gpu_check(tool_enable(1, handle, SEGMENTS, SEGMENT_RING));
	gpu_check(tool_enable(1, handle, SEGMENTS, SEGMENT_SUBMITTED));
	gpu_open(&gpu, 0);
	family = gpu.topology ? qmd_family_for(gpu.topology->compute_major, gpu.topology->compute_minor) : NULL;
	if (!family)
		gpu_skip("the launch descriptors of this GPU are unknown");
	struct tpcset set = gpu_range(0, NARROW_TPCS - 1);

	topology_disable_mask(gpu.topology, &set, narrow.words, QMD_MASK_BITS);
	gpu_check(cuMemAlloc_v2(&outputs, sizeof(uint32_t) * gpu.sm_count * COUNT_OF(launches)));
	gpu_check(cuEventCreate(&first_end, 0));
	begin(NO_SYNC);
}

FIXTURE(close_gpu)
{
	gpu_destroy_streams();
	gpu_check(tool_unsubscribe(handle));
	gpu_check(cuEventDestroy_v2(first_end));
	gpu_check(cuMemFree_v2(outputs));
	gpu_close(&gpu);
}

static void end_of_call(CUresult result)
{
	struct queued *launch = &launches[count];

	gpu_check(result);
	assert_int_equal(launch->descriptors, 1);
	memset(launch + 1, 0, sizeof *launch);
	atomic_fetch_add(&count, 1);
}

static CUdeviceptr output_of(unsigned int number)
{
	return outputs + sizeof(uint32_t) * gpu.sm_count * number;
}

static void launch(CUstream stream, uint64_t cycles)
{
	CUdeviceptr output = output_of(count);
	void *parameters[] = {&output, &cycles};

	end_of_call(cuLaunchKernel(gpu.where, gpu.sm_count, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
}

/* A long launch, and others behind it. */
static void fill_queue(CUstream stream, enum sync sync, unsigned int others)
{
	begin(sync);
	launch(stream, LONG);
	gpu_check(cuEventRecord(first_end, stream));
	for (unsigned int i = 0; i < others; i++)
		launch(stream, SHORT);
}

static void assert_first_runs(void)
{
	assert_int_equal(cuEventQuery(first_end), CUDA_ERROR_NOT_READY);
}

static void narrow_one(const struct queued *launch)
{
	qmd_write(family, launch->descriptor, &(struct qmd_change){.disable = &narrow, .is_exact = true}, NULL);
}

/* Narrows all launches while the first one runs. */
static void narrow_all(void)
{
	for (unsigned int i = 0; i < count; i++)
		narrow_one(&launches[i]);
	assert_first_runs();
}

static bool was_narrow(unsigned int number)
{
	uint32_t sms[2 * TPCSET_MAX];
	unsigned int distinct = 0;

	gpu_check(cuMemcpyDtoH_v2(sms, output_of(number), sizeof(uint32_t) * gpu.sm_count));
	for (unsigned int i = 0; i < gpu.sm_count; i++) {
		bool is_new = true;

		for (unsigned int j = 0; j < i && is_new; j++)
			is_new = sms[j] != sms[i];
		distinct += is_new;
	}
	return distinct <= NARROW_TPCS * gpu.topology->sms_per_tpc;
}

/* How many launches kept the mask that they were launched with: the running one and those behind it, without a gap. */
static unsigned int committed(void)
{
	unsigned int wide = 0;

	gpu_check(cuCtxSynchronize());
	while (wide < count && !was_narrow(wide))
		wide++;
	for (unsigned int i = wide; i < count; i++)
		assert_true(was_narrow(i));
	return wide;
}

/* --- where a launch lies --------------------------------------------------------------------------------------- */

static void assert_names(const struct queued *launch)
{
	assert_int_equal(launch->entry_before & ENTRY_ADDRESS, (uintptr_t)launch->segment & ENTRY_ADDRESS);
}

TEST_WITH(NULL, close_gpu, each_launch_has_a_segment_and_an_entry)
{
	open_gpu();
	fill_queue(gpu_stream_of_case(), NO_SYNC, QUEUE);
	for (unsigned int i = 0; i < count; i++) {
		assert_names(&launches[i]);
		assert_int_equal(ENTRY_BYTES(launches[i].entry_before), launches[i].bytes);
		assert_false(launches[i].entry_before & ENTRY_SYNC);
		assert_int_equal(launches[i].channel, launches[0].channel);
		assert_int_equal(launches[i].put_after, (launches[i].put_before + 1) % RING_ENTRIES);
	}
	gpu_check(cuCtxSynchronize());
}

/* --- until when its mask can be changed -------------------------------------------------------------------------- */

#define FETCHED_AHEAD_LEAST 3
#define FETCHED_AHEAD_MOST 17

TEST_WITH(NULL, close_gpu, a_mask_can_be_changed_until_the_gpu_fetches_it)
{
	open_gpu();
	fill_queue(gpu_stream_of_case(), NO_SYNC, QUEUE);
	narrow_all();
	unsigned int kept = committed();

	print_message("# without SYNC, %u launches are committed\n", kept);
	assert_in_range(kept, FETCHED_AHEAD_LEAST, FETCHED_AHEAD_MOST);
}

/* In time, SYNC acts on each queue. */
TEST_WITH(NULL, close_gpu, with_sync_two_are_committed)
{
	static const unsigned int queues[] = {1, 2, 4, 9, QUEUE};

	open_gpu();
	CUstream stream = gpu_stream_of_case();

	for (unsigned int i = 0; i < COUNT_OF(queues); i++) {
		ROW("%u behind the first", queues[i]);
		fill_queue(stream, SYNC_BEFORE, queues[i]);
		narrow_all();
		for (unsigned int j = 0; j < count; j++)
			assert_true(atomic_load(launches[j].entry) & ENTRY_SYNC);
		assert_in_range(committed(), 1, 2);
	}
}

/* --- what was fetched --------------------------------------------------------------------------------------------- */

TEST_WITH(NULL, close_gpu, what_is_processed_can_be_read)
{
	open_gpu();
	fill_queue(gpu_stream_of_case(), SYNC_BEFORE, QUEUE);
	_Atomic uint32_t *userd = launches[0].userd;

	timed_wait_until((userd[GP_GET] - launches[0].put_before) % RING_ENTRIES != 0);
	assert_int_equal(userd[GP_PUT], launches[count - 1].put_after % RING_ENTRIES);
	assert_in_range((userd[GP_GET] - launches[0].put_before) % RING_ENTRIES, 1, 2);
	assert_first_runs();
	gpu_check(cuCtxSynchronize());
	timed_wait_until(userd[GP_GET] == userd[GP_PUT]);
}

/* --- the memory ------------------------------------------------------------------------------------------------- */

static atomic_bool has_filled;

/* More than a ring has, so that the call waits. */
static void *overfill(void *stream)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	for (unsigned int i = 1; i < COUNT_OF(launches) - 1; i++)
		launch(stream, 0);
	atomic_store(&has_filled, true);
	return NULL;
}

/* Nothing that waits is overwritten, also where the ring is full. A call that waits for room holds up no change. */
TEST_WITH(NULL, close_gpu, what_waits_stays_where_it_is)
{
	pthread_t thread;
	unsigned int before = 0;

	open_gpu();
	CUstream stream = gpu_stream_of_case();

	fill_queue(stream, SYNC_BEFORE, 0);
	atomic_store(&has_filled, false);
	thread = thread_start(overfill, stream);
	/* Until the launching thread stands: the same number in two looks, while the first kernel runs. */
	for (unsigned int now = atomic_load(&count); now != before || now == 1; now = atomic_load(&count)) {
		before = now;
		timed_sleep_ms(20);
	}
	unsigned int waiting = atomic_load(&count);

	for (unsigned int i = 2; i < waiting; i++) {
		assert_memory_equal(launches[i].descriptor, launches[i].qmd, sizeof launches[i].qmd);
		narrow_one(&launches[i]);
	}
	assert_first_runs();
	assert_false(atomic_load(&has_filled));
	pthread_join(thread, NULL);
	gpu_check(cuCtxSynchronize());
	for (unsigned int i = 2; i < waiting; i++)
		assert_true(was_narrow(i));
}

/* --- other launches
 * ------------------------------------------------------------------------------------------------ */

static void launch_shape(CUstream stream, const struct shape *shape)
{
	end_of_call(shape_launch(&gpu, shape, stream, output_of(count)));
}

TEST_WITH(NULL, close_gpu, launches_that_must_fit_are_queued_the_same_way)
{
	const struct shape shapes[] = {{.blocks = 4, .threads = 64, .is_cooperative = true, .blocks_per_sm = 1},
	                               {.blocks = 4, .threads = 64, .cluster = 4}};

	open_gpu();
	for (unsigned int i = 0; i < COUNT_OF(shapes) && gpu.topology->compute_major >= 9; i++) {
		fill_queue(NULL, SYNC_BEFORE, 1);
		launch_shape(NULL, &shapes[i]);
		assert_names(&launches[2]);
		assert_first_runs();
		gpu_check(cuCtxSynchronize());
	}
}

/* Each stream is in one channel, and its launches keep their order there. */
TEST_WITH(NULL, close_gpu, streams_share_channels)
{
	bool seen[64] = {false};
	unsigned int channels = 0;

	open_gpu();
	for (unsigned int i = 0; i < 12; i++) {
		fill_queue(gpu_stream_of_case(), NO_SYNC, 2);
		assert_int_equal(launches[0].channel, launches[2].channel);
		assert_true(launches[0].channel < COUNT_OF(seen));
		channels += !seen[launches[0].channel];
		seen[launches[0].channel] = true;
	}
	assert_in_range(channels, 2, 8);
	gpu_check(cuCtxSynchronize());
}

/* --- a wait in the channel
 * ------------------------------------------------------------------------------------------ */

#define PAGE 4096
#define HELD 8

/* Launches behind a word wait on the GPU, and their calls return; the word lets them go. */
TEST_WITH(NULL, close_gpu, a_launch_waits_for_a_word)
{
	_Atomic uint32_t *word = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr address;

	open_gpu();
	assert_ptr_not_equal(word, MAP_FAILED);
	gpu_check(cuMemHostRegister_v2((void *)word, PAGE, CU_MEMHOSTREGISTER_DEVICEMAP));
	gpu_check(cuMemHostGetDevicePointer_v2(&address, (void *)word, 0));
	CUstream stream = gpu_stream_of_case();

	begin(NO_SYNC);
	gpu_check(cuStreamWaitValue32_v2(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ));
	for (unsigned int i = 0; i < HELD; i++)
		launch(stream, SHORT);
	gpu_check(cuEventRecord(first_end, stream));
	timed_sleep_ms(50);
	assert_first_runs();
	atomic_store(word, 1);
	gpu_check(cuCtxSynchronize());
	assert_int_equal(cuEventQuery(first_end), CUDA_SUCCESS);
	gpu_check(cuMemHostUnregister((void *)word));
	munmap((void *)word, PAGE);
}

RUN_TESTS(NULL, NULL)
