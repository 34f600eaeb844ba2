/*
 * Releases: what the hardware writes when a kernel has ended (facts.md, "Releases"), tested on the GPU at hand. So
 * the simulator is kept right, and one sees whether a GPU that nobody has tried does what its header says.
 *
 * Runs without nvtaskset, since the callback is the test's own.
 *
 * gpus: h200 turing ada blackwell hopper-synthetic
 * runs: bare
 */
#include "../cases.h"
#include "gpu/qmd.h"
#include "support/child.h"
#include "support/graph.h"
#include "support/subscriber.h"

static const struct qmd_family *family;

#define AREA_BYTES 4096

/* Where the hardware writes. */
static struct {
	int file;
	_Atomic uint64_t *words;
} area;

/* Below 1 TiB, if it is free there: descriptors of version 3.0 reach no further. */
#define LOW_ADDRESS ((void *)0x20000000)
#define LOW_ADDRESS_TOO ((void *)0x20010000)

static _Atomic uint64_t *map_area(void *at)
{
	void *start = mmap(at, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, area.file, 0);

	assert_ptr_not_equal(start, MAP_FAILED);
	return start;
}

static CUresult register_memory(void *start, size_t bytes)
{
	return cuMemHostRegister_v2(start, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
}

static CUresult register_area(void)
{
	return register_memory((void *)area.words, AREA_BYTES);
}

/* Nothing says that a release is visible before a synchronisation ends, so this waits. */
#define PATIENCE_SECONDS 60

static void await(unsigned int word, uint64_t value)
{
	time_t end = time(NULL) + PATIENCE_SECONDS;

	while (atomic_load(&area.words[word]) < value && time(NULL) < end)
		sched_yield();
	assert_int_equal(atomic_load(&area.words[word]), value);
}

static struct {
	bool is_on;
	struct qmd_release release;
	unsigned int outcomes[3];
} writing;

static void write_release(int domain, int id, const uint64_t *words)
{
	if (domain == LAUNCHES && id == BEFORE_UPLOAD && writing.is_on)
		writing.outcomes[qmd_release(&writing.release, pointer(words[4]))]++;
}

/* From now on each kernel makes this release into a word of the area. */
static void release_into(unsigned int word, unsigned int slot, enum qmd_release_kind kind, uint64_t value)
{
	CUdeviceptr address;

	gpu_check(cuMemHostGetDevicePointer_v2(&address, (void *)&area.words[word], 0));
	assert_true(qmd_release_prepare(&writing.release, family, slot, kind, address, value));
	writing.is_on = true;
}

/* The slot that counts: slot 1 is CUPTI's. */
#define SLOT 2

static void count_into(unsigned int word)
{
	release_into(word, SLOT, QMD_ADDS, 1);
}

#define NO_SLOT "this GPU's launch descriptors have no slot that can do that"

/* --- opening ----------------------------------------------------------------------------------------------- */

static bool open_with(subscriber_action *act)
{
	memset(&writing, 0, sizeof writing);
	gpu_initialise();
	subscriber_open(act);
	gpu_open(&gpu, 0);
	family = gpu.topology ? qmd_family_for(gpu.topology->compute_major, gpu.topology->compute_minor) : NULL;
	area.file = memfd_create("releases", MFD_CLOEXEC);
	assert_true(area.file >= 0);
	assert_int_equal(ftruncate(area.file, AREA_BYTES), 0);
	area.words = map_area(LOW_ADDRESS);
	return family && qmd_release_reach(family) > 0;
}

static void open_gpu(void)
{
	if (!open_with(write_release))
		gpu_skip(NO_SLOT);
	gpu_check(register_area());
}

/* The context that was open before, while `gpu` is a second one. */
static struct gpu_under_test first;

static void open_second(void)
{
	first = gpu;
	gpu_open(&gpu, 0);
}

static void close_first(void)
{
	struct gpu_under_test closed = first;

	first.context = NULL;
	if (closed.context) {
		gpu_check(cuCtxSetCurrent(closed.context));
		gpu_close(&closed);
		gpu_check(cuCtxSetCurrent(gpu.context));
	}
}

/* Whatever the test has left registered goes with its contexts, so that the next one finds nothing. */
FIXTURE(close_gpu)
{
	subscriber_close();
	close_first();
	gpu_close(&gpu);
	munmap((void *)area.words, AREA_BYTES);
	close(area.file);
}

static void launch_into(CUstream stream)
{
	subscriber_forget();
	gpu_check(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

static void launch(unsigned int kernels)
{
	for (unsigned int i = 0; i < kernels; i++)
		launch_into(NULL);
	gpu_check(cuCtxSynchronize());
}

/* --- in processes of their own: the first tests, since a child of a process that uses CUDA cannot use it --------- */

#define STATUS_NO_SLOT 77

static void run_in_child(void (*body)(void))
{
	struct child_end end = child_run(body);

	if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == STATUS_NO_SLOT)
		gpu_skip(NO_SLOT);
	child_assert_passed(&end);
}

static CUgraph graph;
static CUgraphExec exec;

static void make_graph(void)
{
	for (unsigned int i = 0; i < NODES; i++)
		outputs[i] = gpu.output;
	graph = graph_make();
	exec = graph_instantiate(graph);
}

static void launch_graph(void)
{
	subscriber_forget();
	graph_replay(exec);
}

/* The graph's nodes write into memory that another context has registered. */
TEST_WITH_BY(no_fixture, NULL, run_in_child, a_registration_belongs_to_its_context)
{
	alarm(3 * PATIENCE_SECONDS); /* should a launch never end */
	if (!open_with(write_release))
		_exit(STATUS_NO_SLOT);
	gpu_check(register_area());
	open_second();
	count_into(0);
	make_graph();
	launch_graph();
	await(0, NODES + 1);
	gpu_check(cuCtxDestroy_v2(first.context));
	gpu_check(cuCtxSetCurrent(gpu.context));
	subscriber_forget();
	CUresult launched = cuGraphLaunch(exec, NULL);

	assert_int_equal(launched == CUDA_SUCCESS ? cuCtxSynchronize() : launched, CUDA_ERROR_LAUNCH_FAILED);
}

/* The driver waits for what slot 0 writes. */
static void overwrite_slot_0(int domain, int id, const uint64_t *words)
{
	if (domain == LAUNCHES && id == BEFORE_UPLOAD && writing.is_on) {
		struct qmd_saved_slot empty = {0};

		assert_true(qmd_slot_is_used(family, pointer(words[4]), 0));
		qmd_restore_slot(&writing.release, pointer(words[4]), &empty);
		assert_int_equal(qmd_release(&writing.release, pointer(words[4])), QMD_RELEASES);
	}
}

static void take_slot_0(void)
{
	if (!open_with(overwrite_slot_0))
		_exit(STATUS_NO_SLOT);
	gpu_check(register_area());
	launch(1);
	release_into(0, 0, QMD_ADDS, 1);
	launch_into(NULL);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(atomic_load(&area.words[0]), 1);
}

/* On the hardware, it never ends. */
TEST_WITH(no_fixture, NULL, slot_0_is_the_drivers)
{
	if (!gpu_is_simulated())
		gpu_skip("on the simulated driver only");
	run_in_child(take_slot_0);
}

/* With the address that is registered, a second context need not. */
TEST(a_second_context_registers_another_mapping)
{
	CUdeviceptr address;

	open_gpu();
	open_second();
	gpu_check(cuMemHostGetDevicePointer_v2(&address, (void *)area.words, 0));
	assert_int_equal(register_area(), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	void *again = map_area(LOW_ADDRESS_TOO);

	gpu_check(register_memory(again, AREA_BYTES));
	gpu_check(cuMemHostUnregister(again));
	munmap(again, AREA_BYTES);
}

TEST(registering_breaks_a_capture)
{
	open_gpu();
	gpu_check(cuMemHostUnregister((void *)area.words));
	for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
		bool is_relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
		CUgraph captured = NULL;
		CUstream stream = gpu_new_stream();

		gpu_check(cuStreamBeginCapture_v2(stream, mode));
		assert_int_equal(register_area(), is_relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		assert_int_equal(cuStreamEndCapture(stream, &captured),
		                 is_relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		gpu_check(cuStreamDestroy_v2(stream));
	}
}

/* Only version 4.0 was seen to use slot 0. */
TEST(slots_are_free)
{
	open_gpu();
	gpu_run(&gpu);
	const uint32_t *qmd = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd;

	assert_false(qmd_slot_is_used(family, qmd, 1));
	assert_false(qmd_slot_is_used(family, qmd, 2));
	assert_true(qmd_slot_is_used(family, qmd, 0) || gpu.topology->compute_major != 9);
}

TEST(counts_in_64_bits)
{
	open_gpu();
	for (unsigned int slot = 1; slot < QMD_SLOTS; slot++) {
		atomic_store(&area.words[slot], 0xfffffff0);
		release_into(slot, slot, QMD_ADDS, 1);
		launch(100);
		await(slot, 0x100000054);
	}
	assert_int_equal(writing.outcomes[QMD_RELEASES], 200);
}

TEST(stamps)
{
	open_gpu();
	for (unsigned int i = 0; i < 3; i++) {
		release_into(2 * i, 1, QMD_STAMPS, UINT64_C(0x100000000) + i);
		launch(1);
		await(2 * i, UINT64_C(0x100000000) + i);
	}
	assert_true(atomic_load(&area.words[1]) > 0);
	assert_true(atomic_load(&area.words[3]) > atomic_load(&area.words[1]));
	assert_true(atomic_load(&area.words[5]) > atomic_load(&area.words[3]));
}

static int close_graph(void **state)
{
	if (exec)
		graph_end(exec, graph);
	exec = NULL;
	return close_gpu(state);
}

/* The driver puts a kernel of its own in front (hardware.md). */
TEST_WITH(NULL, close_graph, a_graph_counts_at_every_launch)
{
	open_gpu();
	count_into(0);
	make_graph();
	for (unsigned int launches = 1; launches <= 5; launches++) {
		launch_graph();
		assert_int_equal(subscriber_count(LAUNCHES, GRAPH_NODE_LAUNCH), NODES + 1);
		await(0, (uint64_t)launches * (NODES + 1));
	}
	assert_int_equal(writing.outcomes[QMD_RELEASES], NODES + 1);
}

/* The driver uses the host's descriptor again, with our release in it. */
TEST_WITH(NULL, close_graph, a_node_that_is_uploaded_again)
{
	open_gpu();
	count_into(0);
	make_graph();
	launch_graph();
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 0));
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[1], 1));
	launch_graph();
	await(0, 2 * (NODES + 1));
	assert_int_equal(writing.outcomes[QMD_RELEASES], NODES + 1);
	assert_true(writing.outcomes[QMD_SLOT_USED] > 0);
}

RUN_TESTS_IN(gpu_load, NULL, NULL, close_gpu)
