/*
 * Work is put aside in the middle of kernels and taken back (docs/facts.md, "Time slices"): by what the driver itself asks
 * the kernel driver, all of it or none.
 *
 * This program has the library's part in it, and no nvtaskset is around it.
 */
#include "driver/channels.h"
#include "driver/channels_list.h"
#include "driver/functions.h"
#include "driver/kernel_client.h"
#include "gpu/topology/rm_abi.h"
#include "support/child.h"
#include "support/first_gpu.h"
#include "support/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of the kernels that run here: 1 to 2 ms each, of one block. */
#define CYCLES UINT64_C(3000000)
#define KERNELS 60
#define CONTEXTS 10

static struct error error;

#define assert_done(call)                                    \
	do {                                                 \
		if ((call) < 0)                              \
			fail_msg("%s: %s", #call, error.reason); \
	} while (0)

static void set_up(void)
{
	gpu_load_driver();
	if (driver_resolve("libcuda.so.1", &error) < 0 || channels_watch(&error) < 0)
		fail_msg("%s", error.reason);
	gpu_initialise();
	gpu_open(&gpu, 0);
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* --- work ------------------------------------------------------------------------------------------------------- */

struct work {
	CUstream stream;
	CUdeviceptr output;
	CUevent ends[KERNELS];
};

static void launch(struct work *work, CUfunction function)
{
	uint64_t cycles = CYCLES;
	void *parameters[] = {&work->output, &cycles};

	for (unsigned int i = 0; i < KERNELS; i++) {
		gpu_check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, work->stream, parameters, NULL));
		gpu_check(cuEventRecord(work->ends[i], work->stream));
	}
}

static void prepare(struct work *work)
{
	gpu_check(cuStreamCreate(&work->stream, CU_STREAM_NON_BLOCKING));
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

static void wait_until_it_runs(struct work *work)
{
	time_t end = time(NULL) + 20;

	launch(work, gpu.where);
	while (cuEventQuery(work->ends[0]) == CUDA_ERROR_NOT_READY && time(NULL) < end)
		sched_yield();
	gpu_check(cuEventQuery(work->ends[0]));
}

/* All its kernels together take less than this. */
#define ALL_OF_THEM_MS 300

static bool has_ended(const struct work *work)
{
	return cuEventQuery(work->ends[KERNELS - 1]) == CUDA_SUCCESS;
}

/* --- putting aside ------------------------------------------------------------------------------------------------ */

static void test_stops_and_goes_on(void **state)
{
	struct work work;

	(void)state;
	set_up();
	assert_true(kernel_client_is_known());
	prepare(&work);
	for (unsigned int round = 0; round < 3; round++) {
		wait_until_it_runs(&work);
		assert_done(channels_put_aside(&error));
		assert_int_equal(channels_count(), 8);
		sleep_ms(ALL_OF_THEM_MS);
		assert_false(has_ended(&work));
		assert_done(channels_take_back(&error));
		gpu_check(cuStreamSynchronize(work.stream));
		assert_true(has_ended(&work));
	}
	discard(&work);
	gpu_close(&gpu);
}

static void test_twice_is_once(void **state)
{
	struct work work;

	(void)state;
	set_up();
	prepare(&work);
	wait_until_it_runs(&work);
	assert_done(channels_put_aside(&error));
	assert_done(channels_put_aside(&error));
	assert_done(channels_take_back(&error));
	assert_done(channels_take_back(&error));
	discard(&work);
	gpu_close(&gpu);
}

/* --- the program's calls meanwhile -------------------------------------------------------------------------------- */

/* In a thread of its own: on some driver, one of these might wait, and only this program can take itself back. */
static const char *_Atomic call_made; /* the last one */

#define TRY(call)                                    \
	do {                                         \
		atomic_store(&call_made, #call);     \
		gpu_check(call);                     \
	} while (0)

static struct {
	struct work work;
	CUdeviceptr memory, other; /* `other`: nobody writes it */
	CUstream stream;           /* idle */
	uint32_t *words;           /* the GPU can reach them */
} made;

/* Nothing here is behind work that has to run first: a small copy to the GPU, too, may be done by a channel that is aside. */
static void *call_what_returns(void *unused)
{
	uint64_t cycles = 0;
	void *parameters[] = {&made.work.output, &cycles};
	CUdeviceptr memory;
	CUstream stream;
	CUevent event;

	(void)unused;
	TRY(cuCtxSetCurrent(gpu.context));
	TRY(cuLaunchKernel(gpu.where, 1, 1, 1, 32, 1, 1, 0, made.work.stream, parameters, NULL));
	TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cuStreamDestroy_v2(stream));
	TRY(cuEventCreate(&event, 0));
	TRY(cuEventRecord(event, made.work.stream));
	assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuStreamQuery(made.work.stream), CUDA_ERROR_NOT_READY);
	TRY(cuEventDestroy_v2(event));
	TRY(cuMemAlloc_v2(&memory, 4096));
	TRY(cuMemcpyDtoHAsync_v2(made.words, made.other, sizeof *made.words, made.stream));
	TRY(cuMemcpyHtoDAsync_v2(made.memory, made.words, sizeof *made.words, made.stream));
	atomic_store(&call_made, NULL);
	return NULL;
}

static atomic_int calls_made;

static void *synchronise(void *unused)
{
	(void)unused;
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuStreamSynchronize(made.work.stream));
	atomic_fetch_add(&calls_made, 1);
	return NULL;
}

static void *free_memory(void *memory)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuMemFree_v2(*(CUdeviceptr *)memory));
	atomic_fetch_add(&calls_made, 1);
	return NULL;
}

static void prepare_calls(void)
{
	static uint32_t words[1024];

	made.words = words;
	prepare(&made.work);
	gpu_check(cuMemAlloc_v2(&made.memory, 1 << 20));
	gpu_check(cuMemAlloc_v2(&made.other, 1 << 20));
	gpu_check(cuMemHostRegister_v2(words, sizeof words, 0));
	gpu_check(cuStreamCreate(&made.stream, CU_STREAM_NON_BLOCKING));
}

static void discard_calls(void)
{
	gpu_check(cuStreamSynchronize(made.stream));
	gpu_check(cuStreamDestroy_v2(made.stream));
	gpu_check(cuMemHostUnregister(made.words));
	gpu_check(cuMemFree_v2(made.other));
	discard(&made.work);
}

/* Long after they should have returned. */
#define PATIENCE_MS 5000

static const char *wait_for_calls(void)
{
	for (int waited = 0; waited < PATIENCE_MS && atomic_load(&call_made); waited++)
		sleep_ms(1);
	return atomic_load(&call_made);
}

static void test_calls_meanwhile(void **state)
{
	pthread_t threads[3];

	(void)state;
	set_up();
	prepare_calls();
	atomic_store(&call_made, "none");
	wait_until_it_runs(&made.work);
	assert_done(channels_put_aside(&error));
	pthread_create(&threads[0], NULL, call_what_returns, NULL);
	const char *waits = wait_for_calls();

	pthread_create(&threads[1], NULL, synchronise, NULL);
	pthread_create(&threads[2], NULL, free_memory, &made.memory);
	sleep_ms(ALL_OF_THEM_MS);
	int returned = atomic_load(&calls_made);

	assert_done(channels_take_back(&error));
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (waits)
		fail_msg("this waits until the program is back: %s", waits);
	assert_int_equal(returned, 0);
	assert_int_equal(atomic_load(&calls_made), 2);
	discard_calls();
	gpu_close(&gpu);
}

/* Whether these wait is not the same everywhere, and said; but they end once the program is back. */
static void launch_for_the_first_time(void)
{
	gpu_launch_empty(&gpu); /* the driver may load a kernel when it is launched first */
}

static void copy_there_and_back(void)
{
	uint32_t word = 7;

	gpu_check(cuMemcpyHtoDAsync_v2(made.memory, &word, sizeof word, made.stream));
	gpu_check(cuMemcpyDtoHAsync_v2(&word, made.memory, sizeof word, made.stream));
}

static void *call_it(void *call)
{
	gpu_check(cuCtxSetCurrent(gpu.context));
	(*(void (**)(void))call)();
	atomic_fetch_add(&calls_made, 1);
	return NULL;
}

static void check_that_it_ends(void (*call)(void), const char *what)
{
	pthread_t thread;

	set_up();
	prepare_calls();
	atomic_store(&calls_made, 0);
	wait_until_it_runs(&made.work);
	assert_done(channels_put_aside(&error));
	pthread_create(&thread, NULL, call_it, &call);
	sleep_ms(ALL_OF_THEM_MS);
	print_message("%s, put aside: %s\n", what, atomic_load(&calls_made) ? "returns" : "waits");
	assert_done(channels_take_back(&error));
	pthread_join(thread, NULL);
	gpu_check(cuMemFree_v2(made.memory));
	discard_calls();
	gpu_close(&gpu);
}

static void test_calls_that_may_wait(void **state)
{
	(void)state;
	check_that_it_ends(launch_for_the_first_time, "the first launch of a kernel");
	check_that_it_ends(copy_there_and_back, "a small copy to the GPU, and back, in one stream");
}

/* --- several contexts ----------------------------------------------------------------------------------------------- */

static struct gpu_under_test many[CONTEXTS];
static struct work works[CONTEXTS];

static void open_many(void)
{
	for (unsigned int i = 0; i < CONTEXTS; i++) {
		gpu_open(&many[i], 0);
		prepare(&works[i]);
	}
	for (unsigned int i = 0; i < CONTEXTS; i++) {
		gpu_check(cuCtxSetCurrent(many[i].context));
		launch(&works[i], many[i].where);
	}
}

static unsigned int ended(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < CONTEXTS; i++)
		count += has_ended(&works[i]);
	return count;
}

static void close_many(void)
{
	for (unsigned int i = 0; i < CONTEXTS; i++) {
		gpu_check(cuCtxSetCurrent(many[i].context));
		discard(&works[i]);
		gpu_close(&many[i]);
	}
}

static void test_more_than_one_call_takes(void **state)
{
	(void)state;
	set_up();
	open_many();
	channels_have_changed();
	assert_done(channels_put_aside(&error));
	assert_int_equal(channels_count(), 8 * (CONTEXTS + 1));
	sleep_ms(CONTEXTS * ALL_OF_THEM_MS);
	assert_int_equal(ended(), 0);
	assert_done(channels_take_back(&error));
	close_many();
	gpu_close(&gpu);
}

/* Nobody said that a context has gone: the kernel driver refuses the list, and it is made anew. */
static void test_list_out_of_date(void **state)
{
	struct gpu_under_test other;
	struct work work;

	(void)state;
	set_up();
	gpu_open(&other, 0);
	channels_have_changed();
	assert_done(channels_put_aside(&error));
	assert_done(channels_take_back(&error));
	gpu_close(&other);
	gpu_check(cuCtxSetCurrent(gpu.context));
	prepare(&work);
	wait_until_it_runs(&work);
	assert_done(channels_put_aside(&error));
	assert_int_equal(channels_count(), 8);
	sleep_ms(ALL_OF_THEM_MS);
	assert_false(has_ended(&work));
	assert_done(channels_take_back(&error));
	discard(&work);
	gpu_close(&gpu);
}

/* --- time slices -------------------------------------------------------------------------------------------------------- */

enum {
	SET_TIMESLICE = 0xa06c0103,
	GET_TIMESLICE = 0xa06c0104
};

#define SHORT_US 50

static void order(uint32_t group, uint32_t command, uint64_t *slice_us)
{
	struct kernel_client client;

	assert_true(kernel_client_reach(&client));
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
	(void)request;
	(void)argument;
	atomic_fetch_add(&orders, 1);
}

#define DRIVER_US 2048

static atomic_uint slices_of_driver;

static void count_slices_of_driver(unsigned long request, const void *argument)
{
	const struct rm_control *call = argument;

	if (request == IOCTL_CONTROL && call->command == SET_TIMESLICE &&
	    *(const uint64_t *)(uintptr_t)call->parameters == DRIVER_US)
		atomic_fetch_add(&slices_of_driver, 1);
}

/* The driver sets them itself when a context is made. */
static void have_slices_of_driver(void)
{
	kernel_listen(count_slices_of_driver);
	set_up();
	assert_true(atomic_load(&slices_of_driver) > 0);
	assert_done(channels_set_slice(0, &error));
	assert_int_equal(slice_of(0), DRIVER_US);
}

/* Of two contexts, whose slices differ: each gets its own one back. What has them already is not asked again. */
static void have_slices(void)
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
static void have_slices_of_contexts_that_come_and_go(void)
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
	channels_have_changed();
	assert_done(channels_set_slice(SHORT_US, &error));
	assert_int_equal(channels_list.group_count, 1);
	assert_int_equal(slice_of(0), SHORT_US);
}

static void test_slices_of_driver(void **state)
{
	struct child_end end = child_run(have_slices_of_driver);

	(void)state;
	child_assert_passed(&end);
}

static void test_slices(void **state)
{
	struct child_end end = child_run(have_slices);

	(void)state;
	child_assert_passed(&end);
}

static void test_slices_of_new_contexts(void **state)
{
	struct child_end end = child_run(have_slices_of_contexts_that_come_and_go);

	(void)state;
	child_assert_passed(&end);
}

/* --- what fails ------------------------------------------------------------------------------------------------------- */

/* The second call for the same list fails: what the first one did is undone, and everything runs on. */
static void refuse_the_second(void)
{
	setenv("SIM_FAULTS", "second-aside", 1);
	set_up();
	open_many();
	channels_have_changed();
	assert_int_equal(channels_put_aside(&error), -1);
	close_many();
}

static void refuse_all(void)
{
	setenv("SIM_FAULTS", "no-aside", 1);
	set_up();
	assert_int_equal(channels_put_aside(&error), -1);
	assert_non_null(strstr(error.reason, "does not put its work aside"));
}

static void refuse_slices(void)
{
	setenv("SIM_FAULTS", "no-slice", 1);
	set_up();
	assert_int_equal(channels_set_slice(SHORT_US, &error), -1);
	assert_non_null(strstr(error.reason, "does not set its time slices"));
	assert_done(channels_set_slice(0, &error));
}

/* The program has closed the driver's descriptor, and its number is another file: which nobody asks anything. */
static void lose_the_descriptor(void)
{
	char path[64], target[64];

	set_up();
	assert_done(channels_put_aside(&error));
	assert_done(channels_take_back(&error));
	for (int file = 3; file < 256; file++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", file);
		ssize_t length = readlink(path, target, sizeof target - 1);

		target[length > 0 ? length : 0] = '\0';
		if (strstr(target, "nvidiactl"))
			dup2(open("/dev/null", O_RDWR | O_CLOEXEC), file);
	}
	assert_int_equal(channels_put_aside(&error), -1);
	assert_non_null(strstr(error.reason, "not known"));
	assert_int_equal(channels_take_back(&error), -1);
}

static void run_on_simulator(void (*body)(void))
{
	struct child_end end;

	gpu_load_driver();
	if (!gpu_is_simulated())
		gpu_skip("only a simulated driver fails on request");
	end = child_run(body);
	child_assert_passed(&end);
}

static void test_all_or_none(void **state)
{
	(void)state;
	run_on_simulator(refuse_the_second);
}

static void test_refused(void **state)
{
	(void)state;
	run_on_simulator(refuse_all);
}

static void test_slices_refused(void **state)
{
	(void)state;
	run_on_simulator(refuse_slices);
}

static void test_descriptor_is_gone(void **state)
{
	(void)state;
	run_on_simulator(lose_the_descriptor);
}

/* --- watching ----------------------------------------------------------------------------------------------------------- */

/* As after an attach: the contexts are older than we are. */
static void watch_late(void)
{
	struct work work;

	gpu_initialise();
	gpu_open(&gpu, 0);
	if (driver_resolve("libcuda.so.1", &error) < 0 || channels_watch(&error) < 0)
		fail_msg("%s", error.reason);
	assert_false(kernel_client_is_known());
	kernel_client_provoke_in_primary();
	assert_false(kernel_client_is_known());
	kernel_client_provoke();
	assert_true(kernel_client_is_known());
	prepare(&work);
	wait_until_it_runs(&work);
	assert_done(channels_put_aside(&error));
	sleep_ms(ALL_OF_THEM_MS);
	assert_false(has_ended(&work));
	assert_done(channels_take_back(&error));
	discard(&work);
}

static void test_watched_late(void **state)
{
	struct child_end end = child_run(watch_late);

	(void)state;
	child_assert_passed(&end);
}

/* What is not watched teaches nothing, and all goes on. */
static void watch_no_more(void)
{
	gpu_load_driver();
	if (driver_resolve("libcuda.so.1", &error) < 0 || channels_watch(&error) < 0)
		fail_msg("%s", error.reason);
	channels_unwatch();
	gpu_initialise();
	gpu_open(&gpu, 0);
	assert_false(kernel_client_is_known());
	assert_int_equal(channels_put_aside(&error), -1);
	assert_done(channels_watch(&error));
	kernel_client_provoke();
	assert_done(channels_put_aside(&error));
	assert_done(channels_take_back(&error));
}

/* A context that was made and destroyed unseen leaves many handles without an object in front of the next one's. */
static void watch_again(void)
{
	struct gpu_under_test gone, other;

	set_up();
	channels_unwatch();
	gpu_open(&gone, 0);
	gpu_open(&other, 0);
	gpu_close(&gone);
	assert_done(channels_watch(&error));
	channels_have_changed();
	assert_done(channels_put_aside(&error));
	assert_int_equal(channels_count(), 16);
	assert_done(channels_take_back(&error));
}

static void test_watched_again(void **state)
{
	struct child_end end = child_run(watch_again);

	(void)state;
	child_assert_passed(&end);
}

static void test_not_watched(void **state)
{
	struct child_end end = child_run(watch_no_more);

	(void)state;
	child_assert_passed(&end);
}

int main(void)
{
	/* Those that start the driver in a child come first: it does not survive a fork. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watched_late),
		cmocka_unit_test(test_not_watched),
		cmocka_unit_test(test_watched_again),
		cmocka_unit_test(test_all_or_none),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_slices_of_driver),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_slices_of_new_contexts),
		cmocka_unit_test(test_slices_refused),
		cmocka_unit_test(test_descriptor_is_gone),
		cmocka_unit_test(test_stops_and_goes_on),
		cmocka_unit_test(test_twice_is_once),
		cmocka_unit_test(test_calls_meanwhile),
		cmocka_unit_test(test_calls_that_may_wait),
		cmocka_unit_test(test_more_than_one_call_takes),
		cmocka_unit_test(test_list_out_of_date),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
