/*
 * A tool that has the driver's one subscriber slot before our library is in the process: the partition exists and says
 * that it is not in force, the tool keeps all its events, and as soon as it unsubscribes, launches run in the partition
 * (facts.md, "The callback table").
 *
 * Runs without nvtaskset, and loads the library itself, in both ways. BUILD is the build directory.
 *
 * gpus: h200 hopper-synthetic
 * runs: bare
 */
#include "../cases.h"
#include "launch/space/app_masks.h"
#include "state/revision_text.h"
#include "support/graph.h"
#include "support/subscriber.h"
#include "support/timed.h"

#include <dlfcn.h>

/* --- loading our library ------------------------------------------------------------------------------------------ */

static void *ours; /* NULL until it is loaded */

static void load(const char *path)
{
	ours = dlopen(path, RTLD_NOW);
	if (!ours)
		fail_msg("%s", dlerror());
}

/* As nvtaskset --attach loads it. */
static void attach(void)
{
	const char *(*attached)(const char *told);

	load(in_build("lib/libnvtaskset-attach.so"));
	*(void **)&attached = dlsym(ours, "nvtaskset_attached");
	assert_null(attached(""));
}

static void link_into(const char *directory, const char *name, const char *target)
{
	const char *path = text_of("%s/%s", directory, name);

	unlink(path);
	if (target)
		assert_int_equal(symlink(target, path), 0);
}

/* In place of the driver, beside a link to the driver, as nvtaskset does it. */
static void load_as_driver(void)
{
	char directory[] = "/tmp/nvtaskset-test-XXXXXX";
	Dl_info driver;

	assert_non_null(mkdtemp(directory));
	assert_true(dladdr(*(void **)&cuInit, &driver));
	link_into(directory, "libcuda.so.1", in_build("lib/libcuda.so.1"));
	link_into(directory, "libnvtaskset-driver.so.1", driver.dli_fname);
	load(text_of("%s/libcuda.so.1", directory));
	link_into(directory, "libcuda.so.1", NULL);
	link_into(directory, "libnvtaskset-driver.so.1", NULL);
	rmdir(directory);
}

static void (*come)(void); /* one of both */

/* A case for each way: a process of its own, in which nobody has subscribed before. */
static void run_in_both_ways(void (*body)(void))
{
	ROW("attached");
	come = attach;
	child_passes(body);
	ROW("in the driver's place");
	come = load_as_driver;
	child_passes(body);
}

#define TEST_IN_BOTH_WAYS(name) TEST_BY(run_in_both_ways, name)

/* Puts the partition `before` into the environment, for our library. */
static void prepare(void)
{
	struct segment_revision revision = {.count = 1};
	char text[SEGMENT_ENVIRONMENT_MAX];

	graph_set_up(NULL);
	revision.partitions[0] = (struct segment_partition){.pci = gpu.topology->pci, .set = before};
	setenv(SEGMENT_ENVIRONMENT, revision_format(&revision, text), 1);
	setenv("NVTASKSET_LOG", "off", 1);
}

/* Another tool, whose callback may be called from several threads. */
static atomic_uint heard;

static void hear(void *user, int domain, int id, const void *parameters)
{
	heard++;
}

static CUresult subscribe_counter(uint32_t *handle)
{
	return tool_subscribe(handle, hear, NULL);
}

/* --- while the tool is subscribed, and afterwards ----------------------------------------------------------------- */

TEST_IN_BOTH_WAYS(launches_obey_once_it_has_left)
{
	uint32_t handle;

	prepare();
	subscriber_open(NULL);
	gpu_assert_inside(gpu_all(&gpu));
	come();
	gpu_assert_inside(gpu_all(&gpu));
	assert_false(gpu_is_in_force());
	assert_int_equal(subscribe_counter(&handle), CUDA_ERROR_ALREADY_ACQUIRED);
	assert_int_equal(gpu_nvtaskset("-p"), 1);
	/* The tool has noticed nothing. */
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 2);
	subscriber_enable(RESOURCES, CONTEXT_CREATED);
	subscriber_close();
	assert_true(gpu_is_in_force());
	assert_int_equal(gpu_nvtaskset("-p"), 0);
	gpu_assert_inside(before);
	gpu_set_partition(&gpu, after);
	gpu_assert_inside(after);
	assert_int_equal(gpu_counters().restricted, 2);
}

/* With the address of a function that it got before our library was loaded. */
TEST_IN_BOTH_WAYS(one_that_leaves_past_us)
{
	uint32_t handle;

	prepare();
	table_unsubscribe *unsubscribe = tool_unsubscribe;

	gpu_check(subscribe_counter(&handle));
	come();
	gpu_check(unsubscribe(handle));
	gpu_assert_inside(gpu_all(&gpu));
	assert_false(gpu_is_in_force());
	subscriber_open(NULL);
	gpu_assert_inside(gpu_all(&gpu));
	subscriber_close();
	assert_true(gpu_is_in_force());
	gpu_assert_inside(before);
}

/* --- it unsubscribes while our library is loaded ------------------------------------------------------------------ */

static uint32_t leaving;
static unsigned int refusals;
static table_subscribe *subscribe_really;

static void *leave(void *argument)
{
	gpu_check(tool_unsubscribe(leaving));
	return NULL;
}

/* Our library tries to subscribe, hooks the tool's unsubscribe call, and tries again. The second answer is late: by
 * then the tool has unsubscribed on another thread, and the library has subscribed there. */
static CUresult refuse_late(uint32_t *handle, subscriber_callback *callback, void *user)
{
	CUresult result = subscribe_really(handle, callback, user);

	if (result == CUDA_ERROR_ALREADY_ACQUIRED && ++refusals == 2)
		threads_run(1, leave, NULL, 0);
	return result;
}

TEST_IN_BOTH_WAYS(it_leaves_while_we_come)
{
	void **entry;
	uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);

	prepare();
	/* There is no reason to end the program. */
	setenv("NVTASKSET_STRICT", "1", 1);
	gpu_check(subscribe_counter(&leaving));
	/* It replaces the entry in the driver's table, as profilers do. */
	entry = (void **)&subscriber_table()[TABLE_SUBSCRIBE];
	subscribe_really = (table_subscribe *)*entry;
	assert_int_equal(mprotect((void *)((uintptr_t)entry / size * size), size, PROT_READ | PROT_WRITE), 0);
	*entry = (void *)refuse_late;
	come();
	assert_int_equal(refusals, 2);
	assert_true(gpu_is_in_force());
	gpu_assert_inside(before);
	/* A mask of the program's own for one stream: we must get the callbacks of its launches. */
	struct tpcset kept = gpu_first_of(before, 1);
	const uint64_t disabled[APP_MASKS_WORDS] = {~kept.words[0], ~kept.words[1]};
	app_masks_set *set_mask;
	CUstream stream = gpu_new_stream();

	*(void **)&set_mask = dlsym(ours, APP_MASKS_ENTRY);
	assert_int_equal(set_mask(APP_MASKS_STREAM, stream, disabled), 0);
	gpu_assert_runs_in(&gpu, stream, kept);
	gpu_check(cuStreamDestroy_v2(stream));
	gpu_assert_inside(before);
}

/* --- while others launch -------------------------------------------------------------------------------------------- */

#define THREADS 4

static atomic_bool ends;
static atomic_uint launched;

static void *launch_all_the_time(void *argument)
{
	CUdeviceptr output;

	gpu_check(cuCtxSetCurrent(gpu.context));
	output = gpu_new_output(&gpu);
	while (!ends) {
		gpu_where_into(&gpu, NULL, output);
		launched++;
	}
	struct tpcset ran = gpu_where_into(&gpu, NULL, output);

	assert_true(tpcset_is_subset(&ran, &before));
	return NULL;
}

static void wait_for_launches(void)
{
	unsigned int seen = launched;

	while (launched < seen + 10 * THREADS)
		usleep(1000);
}

TEST_IN_BOTH_WAYS(it_leaves_while_others_launch)
{
	pthread_t threads[THREADS];
	uint32_t handle;

	prepare();
	gpu_check(subscribe_counter(&handle));
	gpu_check(tool_enable(1, handle, LAUNCHES, BEFORE_UPLOAD));
	for (int i = 0; i < THREADS; i++)
		threads[i] = thread_start(launch_all_the_time, NULL);
	wait_for_launches();
	come();
	wait_for_launches();
	assert_true(heard >= launched - THREADS);
	gpu_check(tool_unsubscribe(handle));
	wait_for_launches();
	ends = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(gpu_counters().restricted >= THREADS);
}

RUN_TESTS(NULL, NULL)
