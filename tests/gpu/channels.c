/*
 * Work is suspended in the middle of kernels and resumed (facts.md, "Time slices"): by what the driver itself asks
 * the kernel driver, all of it or none.
 *
 * This program has the library's part in it, and no nvtaskset is around it.
 *
 * gpus: h200 h200-x2
 * runs: bare
 * link: process.a
 */
#include "../cases.h"
#include "base/proc.h"
#include "driver/channels/channels.h"
#include "driver/channels/kernel_client.h"
#include "driver/functions.h"
#include "gpu/topology/rm_abi.h"
#include "support/kernel.h"
#include "support/timed.h"

/* Of the kernels that run here: 1 to 2 ms each, of one block. */
#define CYCLES UINT64_C(3000000)
#define KERNELS 60
#define CONTEXTS 10

static struct error error;

static void set_up(void)
{
	gpu_load_driver();
	assert_done(driver_resolve("libcuda.so.1", &error));
	assert_done(channels_watch(&error));
	gpu_set_up(NULL);
	channels_context_made();
}

/* --- work ------------------------------------------------------------------------------------------------------- */

struct work {
	CUstream stream;
	CUdeviceptr output;
	CUevent ends[KERNELS];
};

static void launch(struct work *work, CUfunction function, uint64_t cycles)
{
	void *parameters[] = {&work->output, &cycles};

	for (unsigned int i = 0; i < KERNELS; i++) {
		gpu_check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, work->stream, parameters, NULL));
		gpu_check(cuEventRecord(work->ends[i], work->stream));
	}
}

static void prepare(struct work *work)
{
	work->stream = gpu_new_stream();
	work->output = gpu_new_output(&gpu);
	for (unsigned int i = 0; i < KERNELS; i++)
		gpu_check(cuEventCreate(&work->ends[i], 0));
}

static void discard(struct work *work)
{
	gpu_check(cuStreamSynchronize(work->stream));
	for (unsigned int i = 0; i < KERNELS; i++)
		gpu_check(cuEventDestroy_v2(work->ends[i]));
	gpu_check(cuMemFree_v2(work->output));
	gpu_check(cuStreamDestroy_v2(work->stream));
}

static bool has_ended(const struct work *work)
{
	return cuEventQuery(work->ends[KERNELS - 1]) == CUDA_SUCCESS;
}

/* The first one that has not; KERNELS if all have. */
static unsigned int not_ended(const struct work *work)
{
	unsigned int first = 0;

	while (first < KERNELS && cuEventQuery(work->ends[first]) == CUDA_SUCCESS)
		first++;
	return first;
}

static unsigned int launch_for_and_suspend(struct work *work, uint64_t cycles)
{
	launch(work, gpu.where, cycles);
	timed_until (not_ended(work) > 0)
		sched_yield();
	assert_done(channels_suspend(&error));
	return not_ended(work);
}

/* In the middle of them: on a busy machine, all may end before they are suspended, but longer ones do not. Returns the first one
 * that has not ended. */
static unsigned int launch_and_suspend(struct work *work)
{
	uint64_t cycles = CYCLES;
	unsigned int first;

	timed_until ((first = launch_for_and_suspend(work, cycles)) < KERNELS) {
		assert_done(channels_resume(&error));
		gpu_check(cuStreamSynchronize(work->stream));
		cycles *= 2;
	}
	return first;
}

#define KERNEL_MS 300 /* one takes less */

static void assert_stops_and_goes_on(struct work *work)
{
	unsigned int first = launch_and_suspend(work);

	assert_int_equal(channels_list.count, 8);
	timed_sleep_ms(KERNEL_MS);
	assert_int_equal(not_ended(work), first);
	assert_done(channels_resume(&error));
}

TIMED(stops_and_goes_on)
{
	struct work work;

	set_up();
	assert_true(kernel_client_is_known());
	prepare(&work);
	for (unsigned int round = 0; round < 3; round++) {
		assert_stops_and_goes_on(&work);
		gpu_check(cuStreamSynchronize(work.stream));
		assert_true(has_ended(&work));
	}
	discard(&work);
	gpu_close(&gpu);
}

/* Nobody said that a context has gone: the kernel driver refuses the list, and it is made anew. */
TIMED(list_out_of_date)
{
	struct gpu_under_test other;
	struct work work;

	set_up();
	gpu_open(&other, 0);
	channels_context_made();
	assert_done(channels_suspend(&error));
	assert_done(channels_resume(&error));
	gpu_close(&other);
	gpu_check(cuCtxSetCurrent(gpu.context));
	prepare(&work);
	assert_stops_and_goes_on(&work);
	discard(&work);
	gpu_close(&gpu);
}

static void *begin_a_context(void *gone)
{
	gpu_open(gone, 0);
	return NULL;
}

/* Nobody has said yet that this thread's context is there; only that another one is. */
TIMED(another_is_being_made)
{
	struct gpu_under_test other, third;

	set_up();
	pthread_t another = thread_start(begin_a_context, &other);

	pthread_join(another, NULL);
	gpu_open(&third, 0);
	channels_context_made();
	assert_int_equal(channels_suspend(&error), CHANNELS_CHANGING);
}

/* Another thread's context that goes is not forgotten since one is there. */
TIMED(another_is_going)
{
	struct gpu_under_test other;

	set_up();
	gpu_open(&other, 0);
	channels_context_going();
	channels_context_made();
	assert_int_equal(channels_suspend(&error), CHANNELS_CHANGING);
}

/* What is not suspended anew, as a context has begun to go, runs again. */
TIMED(one_goes_meanwhile)
{
	struct work work;

	set_up();
	prepare(&work);
	channels_context_made();
	launch_and_suspend(&work);
	channels_context_going();
	assert_int_equal(channels_suspend(&error), CHANNELS_CHANGING);
	timed_wait_until (has_ended(&work));
	discard(&work);
	gpu_close(&gpu);
}

enum {
	SET_TIMESLICE = 0xa06c0103,
	GET_TIMESLICE = 0xa06c0104
};

#define SHORT_US 50

static void order(uint32_t group, uint32_t command, uint64_t *slice_us)
{
	struct kernel_client client;

	assert_done(kernel_client_reach(&client, &error));
	assert_int_equal(kernel_client_control(&client, group, command, slice_us, sizeof *slice_us), 0);
}

static uint64_t slice_of(unsigned int number)
{
	uint64_t slice_us = 0;

	assert_true(number < channels_list.group_count);
	order(channels_list.groups[number].handle, GET_TIMESLICE, &slice_us);
	return slice_us;
}

static atomic_uint orders;

static void count_orders(unsigned long request, const void *argument)
{
	atomic_fetch_add(&orders, 1);
}

/* Of two contexts, whose slices differ: each gets its own one back. What has them already is not asked again. */
TIMED(slices)
{
	struct gpu_under_test other;
	uint64_t before, own = 1000;

	set_up();
	gpu_open(&other, 0);
	assert_done(channels_set_slice(0, &error));
	assert_int_equal(channels_list.group_count, 2);
	before = slice_of(0);
	order(channels_list.groups[1].handle, SET_TIMESLICE, &own);
	assert_done(channels_set_slice(SHORT_US, &error));
	assert_int_equal(slice_of(0), SHORT_US);
	assert_int_equal(slice_of(1), SHORT_US);
	kernel_listen(count_orders);
	assert_done(channels_set_slice(SHORT_US, &error));
	assert_int_equal(atomic_load(&orders), 0);
	kernel_listen(NULL);
	assert_done(channels_set_slice(2 * SHORT_US, &error));
	assert_int_equal(slice_of(1), 2 * SHORT_US);
	assert_done(channels_set_slice(0, &error));
	assert_int_equal(slice_of(0), before);
	assert_int_equal(slice_of(1), own);
}

/* A context that comes gets it with the next call; one that goes is forgotten. */
TIMED(slices_of_new_contexts)
{
	struct gpu_under_test other;
	uint64_t before;

	set_up();
	assert_done(channels_set_slice(0, &error));
	before = slice_of(0);
	assert_done(channels_set_slice(SHORT_US, &error));
	gpu_open(&other, 0);
	assert_false(channels_are_current());
	assert_done(channels_set_slice(SHORT_US, &error));
	assert_int_equal(channels_list.group_count, 2);
	assert_int_equal(slice_of(0), SHORT_US);
	assert_int_equal(slice_of(1), SHORT_US);
	gpu_close(&other);
	assert_done(channels_set_slice(0, &error));
	assert_int_equal(slice_of(0), before);
	channels_note_change();
	assert_done(channels_set_slice(SHORT_US, &error));
	assert_int_equal(channels_list.group_count, 1);
	assert_int_equal(slice_of(0), SHORT_US);
}

/* --- what fails ------------------------------------------------------------------------------------------------------- */

/* The second call for the same list fails: what the first one did is undone, and everything runs on. */
TIMED_BY(timed_run_on_simulator, all_or_none)
{
	static struct gpu_under_test many[CONTEXTS];
	static struct work works[CONTEXTS];

	setenv("SIM_FAULTS", "second-aside", 1);
	set_up();
	for (unsigned int i = 0; i < CONTEXTS; i++) {
		gpu_open(&many[i], 0);
		prepare(&works[i]);
		launch(&works[i], many[i].where, CYCLES);
	}
	channels_context_made();
	assert_int_equal(channels_suspend(&error), CHANNELS_REFUSED);
	for (unsigned int i = 0; i < CONTEXTS; i++) {
		gpu_check(cuCtxSetCurrent(many[i].context));
		discard(&works[i]);
		gpu_close(&many[i]);
	}
}

TIMED_BY(timed_run_on_simulator, a_refusal_to_take_back_is_told)
{
	set_up();
	assert_done(channels_suspend(&error));
	setenv("SIM_FAULTS", "keeps-aside", 1);
	assert_int_equal(channels_resume(&error), -1);
	unsetenv("SIM_FAULTS");
	assert_done(channels_resume(&error));
}

TIMED_BY(timed_run_on_simulator, slices_refused)
{
	setenv("SIM_FAULTS", "no-slice", 1);
	set_up();
	assert_int_equal(channels_set_slice(SHORT_US, &error), CHANNELS_REFUSED);
	assert_non_null(strstr(error.reason, "does not set its time slices"));
	assert_done(channels_set_slice(0, &error));
}

/* The program has closed the driver's descriptor, and its number is another file: which nobody asks anything. */
TIMED_BY(timed_run_on_simulator, descriptor_is_gone)
{
	char target[64];

	set_up();
	assert_done(channels_suspend(&error));
	assert_done(channels_resume(&error));
	for (int file = 3; file < 256; file++) {
		proc_read_link(target, sizeof target, "/proc/self/fd/%d", file);
		if (strstr(target, "nvidiactl"))
			dup2(open("/dev/null", O_RDWR | O_CLOEXEC), file);
	}
	assert_int_equal(channels_suspend(&error), CHANNELS_REFUSED);
	assert_non_null(strstr(error.reason, "is gone"));
	assert_int_equal(channels_resume(&error), -1);
}

/* A context that was made and destroyed unseen leaves many handles without an object in front of the next one's. */
TIMED(watched_again)
{
	struct gpu_under_test gone, other;

	set_up();
	channels_unwatch();
	gpu_open(&gone, 0);
	gpu_open(&other, 0);
	gpu_close(&gone);
	assert_done(channels_watch(&error));
	channels_note_change();
	assert_done(channels_suspend(&error));
	assert_int_equal(channels_list.count, 16);
	assert_done(channels_resume(&error));
}

/* The parent's channels are suspended, and none of the child's: it finds its own, once it has seen the driver's way to them. */
static void find_its_own(void)
{
	channels_after_fork();
	assert_false(kernel_client_is_known());
	assert_false(channels_are_current());
	assert_int_equal(channels_list.count, 0);
	assert_int_equal(channels_suspend(&error), CHANNELS_REFUSED);
	assert_non_null(strstr(error.reason, "not known"));
	kernel_client_provoke();
	assert_true(kernel_client_is_known());
	assert_done(channels_find(&error));
	assert_int_equal(channels_list.count, 8);
}

static atomic_bool stays_in_fstat, is_in_fstat;

/* The C library's, for all of this program: where a thread is while it learns. */
int fstat(int file, struct stat *status)
{
	while (atomic_load(&stays_in_fstat)) {
		atomic_store(&is_in_fstat, true);
		sched_yield();
	}
	return fstatat(file, "", status, AT_EMPTY_PATH);
}

static void *learn(void *unused)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	kernel_client_provoke();
	return NULL;
}

/* The thread that was learning is not there. */
static void not_wait_for_another(void)
{
	struct kernel_client client;

	alarm(20);
	channels_after_fork();
	assert_int_equal(kernel_client_reach(&client, &error), -1);
}

TIMED_BY(timed_run_on_simulator, fork_while_another_learns)
{
	struct child_end end;

	gpu_set_up(NULL);
	assert_done(driver_resolve("libcuda.so.1", &error));
	assert_done(channels_watch(&error));
	atomic_store(&stays_in_fstat, true);
	pthread_t other = thread_start(learn, NULL);

	while (!atomic_load(&is_in_fstat))
		sched_yield();
	end = child_run(not_wait_for_another);
	atomic_store(&stays_in_fstat, false);
	pthread_join(other, NULL);
	child_assert_passed(&end);
	assert_true(kernel_client_is_known());
}

TIMED_BY(timed_run_on_simulator, fork_while_aside)
{
	struct child_end end;

	set_up();
	assert_done(channels_suspend(&error));
	end = child_run(find_its_own);
	assert_done(channels_resume(&error));
	child_assert_passed(&end);
}

RUN_TESTS(NULL, NULL)
