/*
 * Releases: what the hardware writes when a kernel has ended (docs/facts.md, "Releases"), tested on the GPU at hand. So
 * the simulator is kept right, and one sees whether a GPU that nobody has tried does what its header says.
 *
 * Runs without nvtaskset, since the callback is the test's own.
 */
#include "gpu/qmd.h"
#include "support/child.h"
#include "support/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct gpu_under_test gpu;
static const struct qmd_family *family;

/* --- memory ------------------------------------------------------------------------------------------------ */

#define AREA_BYTES 4096
#define AREA_WORDS (AREA_BYTES / sizeof(uint64_t))

/* Where the hardware writes. */
static struct {
	int file;
	_Atomic uint64_t *words;
} area;

static void *map(void *at, int file, size_t bytes, int protection)
{
	void *start = mmap(at, bytes, protection, MAP_SHARED, file, 0);

	assert_ptr_not_equal(start, MAP_FAILED);
	return start;
}

/* Below 1 TiB, if it is free there: descriptors of version 3.0 reach no further. */
#define LOW_ADDRESS ((void *)0x20000000)
#define LOW_ADDRESS_TOO ((void *)0x20010000)

static _Atomic uint64_t *map_area(void *at)
{
	return map(at, area.file, AREA_BYTES, PROT_READ | PROT_WRITE);
}

static void make_area(void)
{
	area.file = memfd_create("releases", MFD_CLOEXEC);
	assert_true(area.file >= 0);
	assert_int_equal(ftruncate(area.file, AREA_BYTES), 0);
	area.words = map_area(LOW_ADDRESS);
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
#define PATIENCE_SECONDS 20

static void await(unsigned int word, uint64_t value)
{
	time_t end = time(NULL) + PATIENCE_SECONDS;

	while (atomic_load(&area.words[word]) < value && time(NULL) < end)
		sched_yield();
	assert_int_equal(atomic_load(&area.words[word]), value);
}

/* --- releases ---------------------------------------------------------------------------------------------- */

static struct {
	bool is_on;
	struct qmd_release release;
	unsigned int outcomes[3];
} writing;

static void *pointer(uint64_t word)
{
	return (void *)(uintptr_t)word;
}

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
	make_area();
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
static int close_gpu(void **state)
{
	(void)state;
	subscriber_close();
	close_first();
	gpu_close(&gpu);
	munmap((void *)area.words, AREA_BYTES);
	close(area.file);
	return 0;
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

/* Should a launch never end, the alarm does. */
static void open_in_child(void)
{
	alarm(3 * PATIENCE_SECONDS);
	if (!open_with(write_release))
		_exit(STATUS_NO_SLOT);
	gpu_check(register_area());
}

static void run_in_child(void (*body)(void))
{
	struct child_end end = child_run(body);

	if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == STATUS_NO_SLOT)
		gpu_skip(NO_SLOT);
	child_assert_passed(&end);
}

#define NODES 10

static CUgraph graph;
static CUgraphNode nodes[NODES];
static CUgraphExec exec;

static void make_nodes(unsigned int blocks)
{
	CUDA_KERNEL_NODE_PARAMS parameters = gpu_where_node(&gpu, NULL);

	parameters.func = gpu.nothing;
	parameters.gridDimX = blocks;
	parameters.blockDimX = 1;
	gpu_check(cuGraphCreate(&graph, 0));
	for (unsigned int i = 0; i < NODES; i++)
		gpu_check(cuGraphAddKernelNode_v2(&nodes[i], graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, &parameters));
}

static void make_graph(void)
{
	make_nodes(1);
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
}

static void launch_graph(void)
{
	subscriber_forget();
	gpu_check(cuGraphLaunch(exec, NULL));
	gpu_check(cuCtxSynchronize());
}

/* The graph's nodes write into memory that another context has registered. */
static void outlive_a_registration(void)
{
	open_in_child();
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

static void test_a_registration_belongs_to_its_context(void **state)
{
	(void)state;
	run_in_child(outlive_a_registration);
}

static void need_simulator(void)
{
	if (!gpu_is_simulated())
		gpu_skip("on the simulated driver only");
}

/* The error stays, in this context only. */
static void write_where_nothing_is(void)
{
	struct gpu_under_test other;

	open_in_child();
	gpu_open(&other, 0);
	gpu_check(cuCtxSetCurrent(gpu.context));
	count_into(0);
	gpu_check(cuMemHostUnregister((void *)area.words));
	launch_into(NULL);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(cuLaunchKernel(gpu.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(register_area(), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(atomic_load(&area.words[0]), 0);
	gpu_check(cuCtxSetCurrent(other.context));
	gpu_check(cuCtxSynchronize());
}

static void test_memory_that_is_gone(void **state)
{
	(void)state;
	need_simulator();
	run_in_child(write_where_nothing_is);
}

/* Memory of the GPU serves only the context that allocated it. The simulated GPU's is out of reach for version 3.0. */
static void write_into_allocations(void)
{
	struct gpu_under_test other;

	open_in_child();
	if (!qmd_release_prepare(&writing.release, family, SLOT, QMD_ADDS, gpu.output, 1))
		_exit(STATUS_NO_SLOT);
	writing.is_on = true;
	launch(1);
	gpu_open(&other, 0);
	gpu_check(cuLaunchKernel(other.nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
}

static void test_memory_of_the_gpu(void **state)
{
	(void)state;
	need_simulator();
	run_in_child(write_into_allocations);
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
static void test_slot_0_is_the_drivers(void **state)
{
	(void)state;
	need_simulator();
	run_in_child(take_slot_0);
}

static void be_refused(void)
{
	CUdeviceptr address;

	setenv("SIM_FAULTS", "no-register", 1);
	open_with(NULL);
	assert_int_not_equal(register_area(), CUDA_SUCCESS);
	assert_int_not_equal(cuMemHostGetDevicePointer_v2(&address, (void *)area.words, 0), CUDA_SUCCESS);
	gpu_run(&gpu);
}

static void test_registration_refused(void **state)
{
	(void)state;
	need_simulator();
	run_in_child(be_refused);
}

/* --- registering -------------------------------------------------------------------------------------------- */

static void test_memory_is_registered_once(void **state)
{
	(void)state;
	open_gpu();
	assert_int_equal(register_area(), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	gpu_check(cuMemHostUnregister((void *)area.words));
	assert_int_equal(cuMemHostUnregister((void *)area.words), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	gpu_check(register_area());
}

/* With the address that is registered, a second context need not. */
static void test_a_second_context_registers_another_mapping(void **state)
{
	CUdeviceptr address;

	(void)state;
	open_gpu();
	open_second();
	gpu_check(cuMemHostGetDevicePointer_v2(&address, (void *)area.words, 0));
	assert_int_equal(register_area(), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	void *again = map_area(LOW_ADDRESS_TOO);

	gpu_check(register_memory(again, AREA_BYTES));
	gpu_check(cuMemHostUnregister(again));
	munmap(again, AREA_BYTES);
}

/* The error is that of the call alone. */
static void refuse(void *start, size_t bytes)
{
	assert_int_equal(register_memory(start, bytes), CUDA_ERROR_INVALID_VALUE);
	gpu_check(cuCtxSynchronize());
	munmap(start, bytes);
}

static void test_what_is_refused(void **state)
{
	(void)state;
	open_gpu();
	refuse(map(NULL, area.file, AREA_BYTES, PROT_READ), AREA_BYTES);
	refuse(map(NULL, area.file, AREA_BYTES, PROT_NONE), AREA_BYTES);
	refuse(map(NULL, area.file, 2 * AREA_BYTES, PROT_READ | PROT_WRITE), 2 * AREA_BYTES);
	void *gone = map(NULL, area.file, AREA_BYTES, PROT_READ | PROT_WRITE);

	munmap(gone, AREA_BYTES);
	refuse(gone, AREA_BYTES);
}

static void test_what_is_accepted(void **state)
{
	(void)state;
	open_gpu();
	gpu_check(cuMemHostUnregister((void *)area.words));
	gpu_check(register_memory((void *)&area.words[8], 64)); /* a part of a page */
	gpu_check(cuMemHostUnregister((void *)&area.words[8]));
	close(area.file);
	gpu_check(register_area());
	area.file = -1;
}

/* --- registering while launches are captured ------------------------------------------------------------------ */

static void open_unregistered(void)
{
	open_gpu();
	gpu_check(cuMemHostUnregister((void *)area.words));
}

static CUresult register_in_capture(int mode, bool says_so, CUresult *registered)
{
	int relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUgraph captured = NULL;
	CUstream stream;

	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamBeginCapture_v2(stream, mode));
	if (says_so)
		gpu_check(cuThreadExchangeStreamCaptureMode(&relaxed));
	*registered = register_area();
	if (says_so)
		gpu_check(cuThreadExchangeStreamCaptureMode(&relaxed));
	CUresult result = cuStreamEndCapture(stream, &captured);

	if (*registered == CUDA_SUCCESS)
		gpu_check(cuMemHostUnregister((void *)area.words));
	if (result == CUDA_SUCCESS)
		gpu_check(cuGraphDestroy(captured));
	gpu_check(cuStreamDestroy_v2(stream));
	return result;
}

static void test_registering_breaks_a_capture(void **state)
{
	CUresult registered;

	(void)state;
	open_unregistered();
	for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_THREAD_LOCAL; mode++) {
		assert_int_equal(register_in_capture(mode, false, &registered), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		assert_int_equal(registered, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	gpu_check(register_in_capture(CU_STREAM_CAPTURE_MODE_RELAXED, false, &registered));
	gpu_check(registered);
}

static void test_a_thread_may_say_that_it_knows(void **state)
{
	CUresult registered;

	(void)state;
	open_unregistered();
	for (int mode = CU_STREAM_CAPTURE_MODE_GLOBAL; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
		gpu_check(register_in_capture(mode, true, &registered));
		gpu_check(registered);
	}
}

/* --- plain launches ----------------------------------------------------------------------------------------- */

/* Only version 4.0 was seen to use slot 0. */
static void test_slots_are_free(void **state)
{
	(void)state;
	open_gpu();
	gpu_run(&gpu);
	const uint32_t *qmd = subscriber_last(LAUNCHES, BEFORE_UPLOAD)->qmd;

	assert_false(qmd_slot_is_used(family, qmd, 1));
	assert_false(qmd_slot_is_used(family, qmd, 2));
	assert_true(qmd_slot_is_used(family, qmd, 0) || gpu.topology->compute_major != 9);
}

static void test_counts_in_64_bits(void **state)
{
	(void)state;
	open_gpu();
	for (unsigned int slot = 1; slot < QMD_SLOTS; slot++) {
		atomic_store(&area.words[slot], 0xfffffff0);
		release_into(slot, slot, QMD_ADDS, 1);
		launch(100);
		await(slot, 0x100000054);
	}
	assert_int_equal(writing.outcomes[QMD_RELEASES], 200);
}

static void test_adds_any_number(void **state)
{
	(void)state;
	open_gpu();
	release_into(1, SLOT, QMD_ADDS, 0x500000003);
	launch(3);
	await(1, 0xf00000009);
	assert_int_equal(atomic_load(&area.words[0]), 0);
	assert_int_equal(atomic_load(&area.words[2]), 0);
}

/* In version 4.0: an addition of one word. */
static void write_one_word(int domain, int id, const uint64_t *words)
{
	if (domain == LAUNCHES && id == BEFORE_UPLOAD && writing.is_on) {
		uint32_t *qmd = pointer(words[4]);
		uint64_t address = (uintptr_t)area.words;

		qmd[352 / 32] |= 1 << (352 - 352) | 1 << (353 - 352) | 1 << (356 - 352);
		qmd[896 / 32] = (uint32_t)address;
		qmd[928 / 32] = (uint32_t)(address >> 32);
		qmd[960 / 32] = 1;
	}
}

static void test_one_word_wraps(void **state)
{
	(void)state;
	open_with(write_one_word);
	if (gpu.topology->compute_major != 9)
		gpu_skip("the descriptor of this GPU was not measured");
	gpu_check(register_area());
	atomic_store(&area.words[0], 0x5fffffffe);
	writing.is_on = true;
	launch(3);
	await(0, 0x500000001);
}

#define STREAMS 4

static void test_streams(void **state)
{
	CUstream streams[STREAMS];

	(void)state;
	open_gpu();
	count_into(0);
	for (unsigned int i = 0; i < STREAMS; i++)
		gpu_check(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (unsigned int i = 0; i < STREAMS * 50; i++)
		launch_into(streams[i % STREAMS]);
	for (unsigned int i = 0; i < STREAMS; i++) {
		gpu_check(cuStreamSynchronize(streams[i]));
		gpu_check(cuStreamDestroy_v2(streams[i]));
	}
	await(0, STREAMS * 50);
}

static void test_cooperative_and_cluster_launches(void **state)
{
	uint32_t sms[8];

	(void)state;
	open_gpu();
	count_into(0);
	gpu_check(gpu_launch_cooperative(&gpu, 20));
	gpu_check(cuCtxSynchronize());
	await(0, 1);
	if (gpu.topology->compute_major >= 9) {
		gpu_where_clusters(&gpu, 4, 8, sms);
		await(0, 2);
	}
}

/* The memory that the first context has registered serves the second. */
static void test_two_contexts(void **state)
{
	(void)state;
	open_gpu();
	count_into(0);
	launch(50);
	open_second();
	launch(50);
	await(0, 100);
}

/* What the second has registered itself serves it when the first has gone. */
static void test_a_context_of_two_ends(void **state)
{
	_Atomic uint64_t *registered_by_first;

	(void)state;
	open_gpu();
	registered_by_first = area.words;
	open_second();
	area.words = map_area(LOW_ADDRESS_TOO);
	gpu_check(register_area());
	count_into(0);
	launch(50);
	close_first();
	munmap((void *)registered_by_first, AREA_BYTES);
	launch(50);
	await(0, 100);
}

static void test_a_launch_that_fails(void **state)
{
	(void)state;
	open_gpu();
	count_into(0);
	subscriber_forget();
	assert_int_equal(cuLaunchKernel(gpu.nothing, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 0);
	launch(1);
	await(0, 1);
}

static void test_stamps(void **state)
{
	(void)state;
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

/* --- another process ------------------------------------------------------------------------------------------ */

#define SEEN_BY_ANOTHER 20

/* Ends by the alarm if it sees nothing. */
static void look_on(void)
{
	const _Atomic uint64_t *words = map_area(NULL);

	alarm(PATIENCE_SECONDS);
	while (atomic_load(&words[0]) != SEEN_BY_ANOTHER)
		sched_yield();
}

static void test_another_process_sees_it(void **state)
{
	(void)state;
	open_gpu();
	struct child child = child_start(look_on);

	count_into(0);
	launch(SEEN_BY_ANOTHER);
	struct child_end end = child_wait(&child);

	child_assert_passed(&end);
}

/* --- graphs ------------------------------------------------------------------------------------------------- */

static int close_graph(void **state)
{
	if (exec) {
		gpu_check(cuGraphExecDestroy(exec));
		gpu_check(cuGraphDestroy(graph));
	}
	exec = NULL;
	return close_gpu(state);
}

/* The driver puts a kernel of its own in front (docs/hardware.md). */
static void test_a_graph_counts_at_every_launch(void **state)
{
	(void)state;
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
static void test_a_node_that_is_uploaded_again(void **state)
{
	(void)state;
	open_gpu();
	count_into(0);
	make_graph();
	launch_graph();
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[3], 0));
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[3], 1));
	launch_graph();
	await(0, 2 * (NODES + 1));
	assert_int_equal(writing.outcomes[QMD_RELEASES], NODES + 1);
	assert_true(writing.outcomes[QMD_SLOT_USED] > 0);
}

static void upload(void)
{
	subscriber_forget();
	gpu_check(cuGraphUpload(exec, NULL));
	gpu_check(cuCtxSynchronize());
}

/* So to count the events of 0xb/3 is not to count kernels. */
static void test_an_upload_is_announced_as_a_launch(void **state)
{
	(void)state;
	open_gpu();
	count_into(0);
	make_graph();
	for (unsigned int uploads = 0; uploads < 2; uploads++) {
		upload();
		assert_int_equal(subscriber_count(LAUNCHES, GRAPH_NODE_LAUNCH), NODES + 1);
		assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), uploads == 0 ? NODES + 1 : 0);
	}
	launch_graph();
	await(0, NODES + 1);
}

/* In its place the driver has a kernel of its own, with the node's release. */
static void test_a_disabled_node_counts(void **state)
{
	(void)state;
	open_gpu();
	count_into(0);
	make_graph();
	launch_graph();
	gpu_check(cuGraphNodeSetEnabled(exec, nodes[3], 0));
	launch_graph();
	await(0, 2 * (NODES + 1));
	assert_true(writing.outcomes[QMD_SLOT_USED] > 0);
	assert_int_equal(writing.outcomes[QMD_RELEASES], NODES + 1);
}

/* The driver writes new descriptors, and leaves the release in them. */
static void test_an_updated_instance(void **state)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph before;

	(void)state;
	open_gpu();
	count_into(0);
	make_graph();
	before = graph;
	launch_graph();
	make_nodes(2);
	gpu_check(cuGraphDestroy(before));
	gpu_check(cuGraphExecUpdate_v2(exec, graph, &info));
	launch_graph();
	await(0, 2 * (NODES + 1));
	assert_true(writing.outcomes[QMD_SLOT_USED] >= NODES);
	assert_int_equal(writing.outcomes[QMD_RELEASES], NODES + 1);
}

static void check_memory_graph(void)
{
	gpu_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (unsigned int launches = 1; launches <= 3; launches++) {
		launch_graph();
		await(0, launches);
	}
}

/* Fills and copies of this size are kernels. */
static void test_a_memset_node(void **state)
{
	CUDA_MEMSET_NODE_PARAMS parameters = {.elementSize = 1, .width = 1 << 20, .height = 1};
	CUgraphNode node;

	(void)state;
	open_gpu();
	count_into(0);
	gpu_check(cuMemAlloc_v2(&parameters.dst, parameters.width));
	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddMemsetNode(&node, graph, NULL, 0, &parameters, gpu.context));
	check_memory_graph();
	gpu_check(cuMemFree_v2(parameters.dst));
}

static void test_a_copy_node(void **state)
{
	CUDA_MEMCPY3D parameters = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.WidthInBytes = 1 << 20,
		.Height = 1,
		.Depth = 1,
	};
	CUgraphNode node;

	(void)state;
	open_gpu();
	count_into(0);
	gpu_check(cuMemAlloc_v2(&parameters.srcDevice, 1 << 20));
	gpu_check(cuMemAlloc_v2(&parameters.dstDevice, 1 << 20));
	parameters.srcPitch = parameters.dstPitch = 1 << 20;
	gpu_check(cuGraphCreate(&graph, 0));
	gpu_check(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &parameters, gpu.context));
	check_memory_graph();
	gpu_check(cuMemFree_v2(parameters.srcDevice));
	gpu_check(cuMemFree_v2(parameters.dstDevice));
}

/* Outside of graphs, too. */
static void test_fills_and_copies(void **state)
{
	CUdeviceptr memory;

	(void)state;
	open_gpu();
	count_into(0);
	gpu_check(cuMemAlloc_v2(&memory, 2 << 20));
	gpu_check(cuMemsetD8_v2(memory, 1, 4096));
	gpu_check(cuMemsetD8_v2(memory, 1, 1 << 20));
	gpu_check(cuMemcpyDtoD_v2(memory + (1 << 20), memory, 4096));
	gpu_check(cuMemcpyDtoD_v2(memory + (1 << 20), memory, 1 << 20));
	gpu_check(cuCtxSynchronize());
	await(0, 3);
	gpu_check(cuMemFree_v2(memory));
}

/* --------------------------------------------------------------------------------------------------------------- */

static int load_driver(void **state)
{
	(void)state;
	gpu_load_driver();
	return 0;
}

#define ON_GPU(test) cmocka_unit_test_teardown(test, close_gpu)
#define WITH_GRAPH(test) cmocka_unit_test_teardown(test, close_graph)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_registration_belongs_to_its_context),
		cmocka_unit_test(test_memory_that_is_gone),
		cmocka_unit_test(test_memory_of_the_gpu),
		cmocka_unit_test(test_slot_0_is_the_drivers),
		cmocka_unit_test(test_registration_refused),
		ON_GPU(test_memory_is_registered_once),
		ON_GPU(test_a_second_context_registers_another_mapping),
		ON_GPU(test_what_is_refused),
		ON_GPU(test_what_is_accepted),
		ON_GPU(test_registering_breaks_a_capture),
		ON_GPU(test_a_thread_may_say_that_it_knows),
		ON_GPU(test_slots_are_free),
		ON_GPU(test_counts_in_64_bits),
		ON_GPU(test_adds_any_number),
		ON_GPU(test_one_word_wraps),
		ON_GPU(test_streams),
		ON_GPU(test_cooperative_and_cluster_launches),
		ON_GPU(test_two_contexts),
		ON_GPU(test_a_context_of_two_ends),
		ON_GPU(test_a_launch_that_fails),
		ON_GPU(test_stamps),
		ON_GPU(test_another_process_sees_it),
		WITH_GRAPH(test_a_graph_counts_at_every_launch),
		WITH_GRAPH(test_a_node_that_is_uploaded_again),
		WITH_GRAPH(test_an_upload_is_announced_as_a_launch),
		WITH_GRAPH(test_a_disabled_node_counts),
		WITH_GRAPH(test_an_updated_instance),
		WITH_GRAPH(test_a_memset_node),
		WITH_GRAPH(test_a_copy_node),
		ON_GPU(test_fills_and_copies),
	};

	return cmocka_run_group_tests_name("releases", tests, load_driver, NULL);
}
