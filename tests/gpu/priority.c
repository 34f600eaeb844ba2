/*
 * Programs with a priority or a weight that share a GPU: who goes first, in which proportion they have it, and what becomes of
 * that when one of them pauses, is edited, stopped, or ends.
 *
 * Each program is a process of its own. A simulated GPU gives those that want to run their time slices in turn.
 */
#include "../alone.h"
#include "../cases.h"
#include "gpu/topology/rm_abi.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "support/client.h"
#include "support/kernel.h"
#include "support/pair.h"
#include "support/timed.h"

#define SHIM "/libcuda.so.1"
#define HIGH 80
#define LOW 20

/* The time slice that each program was given last, by the driver, too; 0: it was given none. */
static _Atomic uint64_t *slices_us;

static struct segment_revision of_rank(unsigned int priority, unsigned int weight)
{
	return (struct segment_revision){.rank = {.priority = (uint16_t)(priority + 1), .weight = (uint16_t)weight}};
}

static unsigned int self; /* which of them this is */

#define SET_TIMESLICE 0xa06c0103

static void note_slice(unsigned long request, const void *argument)
{
	const struct rm_control *call = argument;

	if (request == IOCTL_CONTROL && call->command == SET_TIMESLICE)
		atomic_store(&slices_us[self], *(const uint64_t *)(uintptr_t)call->parameters);
}

static struct segment_revision its_revision; /* of the program that is started next; so is `self` */

static void be(void)
{
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/null", 1);
	kernel_listen(note_slice);
	timed_open_gpu();
	timed_give_and_wait(&its_revision);
	pair_work(self, 2);
}

/* --- their parent ------------------------------------------------------------------------------------------------------ */

#define SLICES_SIZE (PAIR_PROGRAMS * sizeof *slices_us)

static int set_up(void **state)
{
	slices_us = mmap(NULL, SLICES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return slices_us == MAP_FAILED ? -1 : pair_set_up(state);
}

static int tear_down(void **state)
{
	munmap(slices_us, SLICES_SIZE);
	return pair_tear_down(state);
}

static void edit(unsigned int number, struct segment_revision wanted)
{
	struct segment segment;
	struct error error;

	assert_int_equal(segment_open(&segment, pair_children[number].pid, NULL, NULL), SEGMENT_FOUND);
	if (segment_change(&segment, &wanted, NULL, &error) < 0)
		fail_msg("%s", error.reason);
	segment_close(&segment);
}

static void start(unsigned int number, void (*body)(void), struct segment_revision revision)
{
	self = number;
	its_revision = revision;
	pair_start(number, body);
}

static void start_high(void)
{
	start(0, be, of_rank(HIGH, 0));
}

static void start_low(void)
{
	start(1, be, of_rank(LOW, 0));
}

/* For longer than the time between two turns. */
#define QUIET_MS 300

static void wait_until_never_aside(unsigned int number)
{
	uint64_t before = UINT64_MAX;

	timed_until (pair_time_of(number).aside_us == before) {
		before = pair_time_of(number).aside_us;
		timed_sleep_ms(QUIET_MS);
	}
}

/* By itself, a program has a time slice of some milliseconds. */
#define SHORT_US 200

static void wait_for_slice(unsigned int number, bool is_short)
{
	timed_wait_until(slices_us[number] > 0 && (slices_us[number] <= SHORT_US) == is_short);
}

/* --- priorities ------------------------------------------------------------------------------------------------------------ */

/* How many kernels each has done while the first one did so many. */
static struct done {
	unsigned int first, second;
} done_meanwhile(unsigned int kernels)
{
	const struct done before = {pair_done(0), pair_done(1)};

	pair_wait_for_done(0, kernels);
	const struct done done = {pair_done(0) - before.first, pair_done(1) - before.second};

	print_message("%u kernels beside %u\n", done.first, done.second);
	return done;
}

/* With equal rights each would have a half. */
static bool goes_first(void)
{
	const struct done done = done_meanwhile(200);

	return done.first >= 3 * done.second;
}

/* The lower one does not wait for ever. A busy machine may give a thread of theirs no processor for a while. */
TEST(higher_goes_first)
{
	start_low();
	start_high();
	pair_wait_for_aside(1, 100000);
	timed_until (goes_first())
		;
	assert_int_equal(pair_time_of(0).aside_us, 0);
	assert_int_equal(pair_time_of(0).state, SEGMENT_TIME_IN_FORCE);
	assert_int_equal(pair_time_of(1).state, SEGMENT_TIME_IN_FORCE);
	pair_wait_for_done(1, 6);
	pair_finish_both();
}

static void be_client_without_a_number(void)
{
	timed_open_gpu();
	pair_work(1, 2);
}

static void be_without_a_number(void)
{
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/null", 1);
	be_client_without_a_number();
}

/* A neighbour without a number gives way while a program with a number is there, and has our thread for as long. A lower program goes
 * last beside the neighbour. */
TEST(neighbour_without_a_number)
{
	start(1, be_without_a_number, of_rank(0, 0));
	pid_t neighbour = pair_children[1].pid;

	pair_wait_for_done(1, 20);
	assert_false(timed_has_thread_in(neighbour));
	start_high();
	pair_wait_for_aside(1, 100000);
	timed_until (goes_first())
		;
	kill(pair_children[0].pid, SIGKILL);
	pair_wait_for(0);
	timed_wait_until(!timed_has_thread_in(neighbour));
	atomic_store(&pair->programs[0].is_ready, false);
	start(0, be, of_rank(LOW, 0));
	pair_wait_for_aside(0, 100000);
	assert_true(timed_has_thread_in(neighbour));
	pair_finish_both();
}

/* In its turns alone, 200 kernels would take ten seconds and more. */
TEST(pause)
{
	start_high();
	start_low();
	pair_wait_for_aside(1, 50000);
	atomic_store(&pair->pauses, true);
	wait_until_never_aside(1);
	pair_wait_for_done(1, 200);
	atomic_store(&pair->pauses, false);
	pair_wait_for_aside(1, 50000);
	pair_finish_both();
}

/* The kernel driver is told, and once more when the higher one has gone: killed, it holds up nobody. */
TEST(slices)
{
	start_low();
	pair_wait_for_done(1, 20);
	wait_for_slice(1, false);
	atomic_store(&pair->pauses, true);
	self = 0;
	its_revision = of_rank(HIGH, 0);
	pair_children[0] = child_start(be);
	wait_for_slice(1, true);
	wait_for_slice(0, false);
	kill(pair_children[0].pid, SIGKILL);
	pair_wait_for(0);
	wait_for_slice(1, false);
	pair_wait_for_done(1, 200);
	pair_finish(1);
}

/* 3:1; in any case clearly more than one half, and not all. */
static bool are_by_weight(void)
{
	const struct done done = done_meanwhile(600);

	return 2 * done.first >= 3 * done.second && done.first <= 6 * done.second;
}

TEST(weights)
{
	start(0, be, of_rank(SEGMENT_PRIORITY_USUAL, 300));
	start(1, be, of_rank(SEGMENT_PRIORITY_USUAL, 100));
	pair_wait_for_aside(1, 30000);
	timed_until (are_by_weight())
		;
	pair_finish_both();
}

TEST(edits)
{
	start(0, be, of_rank(SEGMENT_PRIORITY_USUAL, 0));
	start(1, be, of_rank(SEGMENT_PRIORITY_USUAL, 0));
	edit(0, of_rank(HIGH, 0));
	pair_wait_for_aside(1, 50000);
	edit(1, of_rank(SEGMENT_PRIORITY_MAX, 0));
	pair_wait_for_aside(0, 50000);
	wait_until_never_aside(1);
	pair_finish_both();
}

/* Stopped while it is suspended or not, it holds up nobody. */
TEST(lower_one_stopped)
{
	start_high();
	start_low();
	pair_wait_for_aside(1, 50000);
	kill(pair_children[1].pid, SIGSTOP);
	pair_wait_for_done(0, 100);
	kill(pair_children[1].pid, SIGCONT);
	pair_wait_for_aside(1, 50000);
	pair_finish_both();
}

/* --- clients of MPS ------------------------------------------------------------------------------------------------------------ */

/* Its channels are the server's: it is never suspended, and the kernel driver is not asked. */
static void be_client(void)
{
	timed_open_gpu();
	timed_give_to_client(&its_revision);
	assert_true(timed_has_thread());
	kernel_was_asked_by(SHIM);
	pair_work(self, 2);
	assert_false(kernel_was_asked_by(SHIM));
	assert_int_equal(timed_look().state, SEGMENT_TIME_HELD);
	assert_true(self != 0 || timed_look().held == 0);
}

static int set_up_with_mps(void **state)
{
	return set_up(state) < 0 ? -1 : client_set_up(state);
}

static int tear_down_with_mps(void **state)
{
	tear_down(state);
	return client_tear_down(state);
}

TEST_WITH(set_up_with_mps, tear_down_with_mps, gives_way_to_clients)
{
	start(0, be_client, of_rank(HIGH, 0));
	start_low();
	pair_wait_for_aside(1, 50000);
	pair_finish_both();
}

TEST_WITH(set_up_with_mps, tear_down_with_mps, client_without_a_number)
{
	start(1, be_client_without_a_number, of_rank(0, 0));
	pair_wait_for_done(1, 20);
	assert_false(timed_has_thread_in(pair_children[1].pid));
	start(0, be_client, of_rank(HIGH, 0));
	pair_wait_for_aside(1, 50000);
	pair_finish_both();
}

TEST_WITH(set_up_with_mps, tear_down_with_mps, clients_go_on)
{
	start(1, be_client, of_rank(LOW, 0));
	start_high();
	pair_wait_for_done(0, 100);
	pair_wait_for_done(1, 15);
	pair_finish_both();
}

/* --- what is never suspended ------------------------------------------------------------------------------------------- */

/* Found while it is suspended for ten seconds by its quota: it is resumed at once, and goes on with short slices. */
static bool stays_present(void)
{
	uint64_t aside_us = timed_look().aside_us;

	timed_sleep_ms(QUIET_MS);
	return timed_look().aside_us == aside_us;
}

static void come_to_use_managed_memory(void)
{
	struct segment_revision revision = of_rank(LOW, 0);
	CUdeviceptr memory;

	revision.quota = (struct segment_quota){.run_us = 1000, .period_us = 10000000};
	self = 1;
	kernel_listen(note_slice);
	timed_open_gpu();
	timed_give_and_wait(&revision);
	timed_launch(500);
	timed_wait_until(timed_look().aside_us >= 50000);
	gpu_check(cuMemAllocManaged(&memory, 4096, 1));
	timed_wait_for_state(SEGMENT_TIME_MANAGED);
	wait_for_slice(1, true);
	timed_until (stays_present())
		;
	assert_true(timed_has_thread());
	atomic_store(&pair->pauses, true);
	gpu_check(cuCtxSynchronize());
}

TEST(managed_memory_later)
{
	gpu_load_driver();
	if (!gpu_is_simulated())
		gpu_skip("only for a simulated driver: it allocates managed memory");
	start_high();
	pair_children[1] = child_start(come_to_use_managed_memory);
	struct child_end end = pair_wait_for(1);

	pair_finish(0);
	child_assert_passed(&end);
}

RUN_TESTS_ALONE(NULL, NULL, set_up, tear_down)
