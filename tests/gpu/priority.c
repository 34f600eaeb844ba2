/*
 * Programs with a priority or a weight that share a GPU: who goes first, in which proportion they have it, and what becomes of
 * that when one of them pauses, is edited, stopped, or ends.
 *
 * Each program is a process of its own. A simulated GPU gives those that want to run their time slices in turn.
 */
#include "../alone.h"
#include "gpu/topology/rm_abi.h"
#include "state/segment.h"
#include "support/first_gpu.h"
#include "support/kernel.h"
#include "support/pair.h"
#include "support/timed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHIM "/libcuda.so.1"
#define HIGH 80
#define LOW 20

/* The time slice that each program was given last, by the driver, too; 0: it was given none. */
static _Atomic uint64_t *slices_us;

static struct segment_revision of_rank(unsigned int priority, unsigned int weight)
{
	return (struct segment_revision){.rank = {.priority = (uint16_t)(priority + 1), .weight = (uint16_t)weight}};
}

/* --- the programs --------------------------------------------------------------------------------------------------- */

static unsigned int self; /* which of them this is */

#define SET_TIMESLICE 0xa06c0103

static void note_slice(unsigned long request, const void *argument)
{
	const struct rm_control *call = argument;

	if (request == IOCTL_CONTROL && call->command == SET_TIMESLICE)
		atomic_store(&slices_us[self], *(const uint64_t *)(uintptr_t)call->parameters);
}

static void be(unsigned int number, struct segment_revision revision)
{
	self = number;
	kernel_listen(note_slice);
	timed_open_gpu();
	timed_give_and_wait(&revision);
	pair_work(self, 2);
}

static void be_high(void)
{
	be(0, of_rank(HIGH, 0));
}

static void be_low(void)
{
	be(1, of_rank(LOW, 0));
}

static void be_low_without_slices(void)
{
	setenv("SIM_FAULTS", "no-slice", 1);
	gpu_load_driver();
	if (!gpu_is_simulated())
		timed_leave_out("only a simulated driver fails on request");
	be_low();
}

static void be_usual_first(void)
{
	be(0, of_rank(SEGMENT_PRIORITY_USUAL, 0));
}

static void be_usual(void)
{
	be(1, of_rank(SEGMENT_PRIORITY_USUAL, 0));
}

static void be_heavy(void)
{
	be(0, of_rank(SEGMENT_PRIORITY_USUAL, 300));
}

static void be_light(void)
{
	be(1, of_rank(SEGMENT_PRIORITY_USUAL, 100));
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

	assert_int_equal(segment_open(&segment, pair_children[number].pid, NULL), SEGMENT_FOUND);
	if (segment_change(&segment, &wanted, NULL, &error) < 0)
		fail_msg("%s", error.reason);
	segment_close(&segment);
}

/* For longer than the time between two turns. */
#define QUIET_MS 300

static void wait_until_never_aside(unsigned int number)
{
	double end = timed_now_s() + PATIENCE_S;
	uint64_t before, after = pair_time_of(number).aside_us;

	do {
		before = after;
		timed_sleep_ms(QUIET_MS);
		after = pair_time_of(number).aside_us;
	} while (after != before && timed_now_s() < end);
	assert_int_equal(after, before);
}

static unsigned int kernels_of(unsigned int number)
{
	return atomic_load(&pair->programs[number].done);
}

/* By itself, a program has a time slice of some milliseconds. */
#define SHORT_US 200

static void wait_for_slice(unsigned int number, bool is_short)
{
	double end = timed_now_s() + PATIENCE_S;
	bool is_so = false;

	while (!is_so && timed_now_s() < end) {
		uint64_t slice_us = atomic_load(&slices_us[number]);

		is_so = slice_us > 0 && (slice_us <= SHORT_US) == is_short;
		timed_sleep_ms(1);
	}
	assert_true(is_so);
}

/* --- priorities ------------------------------------------------------------------------------------------------------------ */

/* With equal rights each would have a half. */
static void test_higher_goes_first(void **state)
{
	(void)state;
	pair_start(1, be_low);
	pair_start(0, be_high);
	pair_wait_for_aside(1, 100000);
	unsigned int before[2] = {kernels_of(0), kernels_of(1)};

	pair_wait_for_done(0, 200);
	unsigned int high = kernels_of(0) - before[0], low = kernels_of(1) - before[1];

	assert_int_equal(pair_time_of(0).aside_us, 0);
	assert_int_equal(pair_time_of(0).state, SEGMENT_TIME_IN_FORCE);
	assert_int_equal(pair_time_of(1).state, SEGMENT_TIME_IN_FORCE);
	pair_finish_both();
	if (high < 3 * low)
		fail_msg("%u kernels of the higher one, %u of the lower one", high, low);
}

/* In its turns alone, 200 kernels would take ten seconds and more. */
static void test_pause(void **state)
{
	(void)state;
	pair_start(0, be_high);
	pair_start(1, be_low);
	pair_wait_for_aside(1, 50000);
	atomic_store(&pair->pauses, true);
	wait_until_never_aside(1);
	pair_wait_for_done(1, 200);
	atomic_store(&pair->pauses, false);
	pair_wait_for_aside(1, 50000);
	pair_finish_both();
}

static void test_nobody_waits_for_ever(void **state)
{
	(void)state;
	pair_start(0, be_high);
	pair_start(1, be_low);
	pair_wait_for_aside(1, 50000);
	pair_wait_for_done(1, 6);
	pair_finish_both();
}

/* The kernel driver is told, and once more when the higher one has gone. */
static void test_slices(void **state)
{
	(void)state;
	pair_start(1, be_low);
	pair_wait_for_done(1, 20);
	wait_for_slice(1, false);
	atomic_store(&pair->pauses, true);
	pair_children[0] = child_start(be_high);
	wait_for_slice(1, true);
	wait_for_slice(0, false);
	kill(pair_children[0].pid, SIGKILL);
	pair_wait_for(0);
	wait_for_slice(1, false);
	pair_finish(1);
}

/* Where the kernel driver refuses them: it is put aside as ever, and says so once. */
static void test_slices_refused(void **state)
{
	(void)state;
	pair_start(1, be_low_without_slices);
	pair_start(0, be_high);
	pair_wait_for_aside(1, 50000);
	atomic_store(&pair->pauses, true);
	wait_until_never_aside(1);
	atomic_store(&pair->ends, true);
	struct child_end end = pair_wait_for(1);
	const char *said = strstr(end.errors, "the priority is not in force");

	child_assert_passed(&end);
	assert_non_null(said);
	assert_null(strstr(said + 1, "the priority is not in force"));
	pair_finish(0);
}

/* It has kernels that are not counted: nobody knows whether it wants to run, so nobody waits for it. */
static void be_high_and_unknown(void)
{
	const struct segment_revision revision = of_rank(HIGH, 0);
	struct segment segment;

	self = 0;
	timed_open_gpu();
	segment = gpu_own_segment();
	counts_note_gap_everywhere(&segment, COUNTS_OLDER);
	segment_close(&segment);
	timed_give_and_wait(&revision);
	pair_work(self, 2);
}

static void test_unknown_work(void **state)
{
	(void)state;
	pair_start(0, be_high_and_unknown);
	pair_start(1, be_low);
	wait_for_slice(1, true);
	wait_until_never_aside(1);
	pair_finish_both();
}

/* --- weights ----------------------------------------------------------------------------------------------------------------- */

/* 3:1; in any case clearly more than one half, and not all. */
static void test_weights(void **state)
{
	(void)state;
	pair_start(0, be_heavy);
	pair_start(1, be_light);
	pair_wait_for_aside(1, 30000);
	unsigned int before[2] = {kernels_of(0), kernels_of(1)};

	pair_wait_for_done(0, 600);
	unsigned int heavy = kernels_of(0) - before[0], light = kernels_of(1) - before[1];

	pair_finish_both();
	if (2 * heavy < 3 * light || heavy > 6 * light)
		fail_msg("%u kernels with a weight of 300, %u with 100", heavy, light);
}

/* --- edits -------------------------------------------------------------------------------------------------------------------- */

static void test_edits(void **state)
{
	(void)state;
	pair_start(0, be_usual_first);
	pair_start(1, be_usual);
	edit(0, of_rank(HIGH, 0));
	pair_wait_for_aside(1, 50000);
	edit(1, of_rank(SEGMENT_PRIORITY_MAX, 0));
	pair_wait_for_aside(0, 50000);
	wait_until_never_aside(1);
	pair_finish_both();
}

/* --- those that do not go on -------------------------------------------------------------------------------------------------- */

static void test_killed(void **state)
{
	(void)state;
	pair_start(0, be_high);
	pair_start(1, be_low);
	pair_wait_for_aside(1, 50000);
	kill(pair_children[0].pid, SIGKILL);
	pair_wait_for(0);
	wait_until_never_aside(1);
	pair_wait_for_done(1, 200);
	pair_finish(1);
}

/* A simulated GPU goes on giving time slices to who is stopped, and next to nothing to short ones: so no kernels are counted. */
static void test_stopped(void **state)
{
	(void)state;
	pair_start(0, be_high);
	pair_start(1, be_low);
	pair_wait_for_aside(1, 50000);
	kill(pair_children[0].pid, SIGSTOP);
	wait_until_never_aside(1);
	kill(pair_children[0].pid, SIGCONT);
	pair_wait_for_aside(1, 50000);
	pair_finish_both();
}

/* Stopped while it is aside or not, it holds up nobody. */
static void test_lower_one_stopped(void **state)
{
	(void)state;
	pair_start(0, be_high);
	pair_start(1, be_low);
	pair_wait_for_aside(1, 50000);
	kill(pair_children[1].pid, SIGSTOP);
	pair_wait_for_done(0, 100);
	kill(pair_children[1].pid, SIGCONT);
	pair_wait_for_aside(1, 50000);
	pair_finish_both();
}

/* --- the end, and children ---------------------------------------------------------------------------------------------------- */

static void be_aside(struct segment_revision revision)
{
	double end = timed_now_s() + PATIENCE_S;

	self = 1;
	timed_open_gpu();
	timed_give_and_wait(&revision);
	timed_launch(500);
	while (timed_look().aside_us < 50000 && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(timed_look().aside_us >= 50000);
}

#define DISABLE_CHANNELS 0x2080110b

static atomic_uint backs; /* how often channels were taken back */

static void note_back(unsigned long request, const void *argument)
{
	const struct rm_control *call = argument;

	if (request == IOCTL_CONTROL && call->command == DISABLE_CHANNELS && *(const uint8_t *)(uintptr_t)call->parameters == 0)
		atomic_fetch_add(&backs, 1);
}

/* Its quota wants it aside for ten seconds: it is back while its neighbours are looked for, however long that takes. */
static void look_for_others_while_aside(void)
{
	const struct segment_revision rank = of_rank(LOW, 0);
	double end = timed_now_s() + PATIENCE_S;

	kernel_listen(note_back);
	be_aside((struct segment_revision){.quota = {.run_us = 1000, .period_us = 10000000}});
	unsigned int before = atomic_load(&backs);

	timed_give(&rank);
	while (atomic_load(&backs) == before && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_int_equal(atomic_load(&backs), before + 1);
}

static void exit_while_aside(void)
{
	be_aside(of_rank(LOW, 0));
	exit(0);
}

/* The child has no thread and takes no part. */
static void fork_while_aside(void)
{
	int status;

	be_aside(of_rank(LOW, 0));
	pid_t child = fork();

	if (child == 0)
		_exit(timed_has_thread() ? 1 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(timed_has_thread());
	uint64_t before = timed_look().aside_us;
	double end = timed_now_s() + PATIENCE_S;

	while (timed_look().aside_us < before + 50000 && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(timed_look().aside_us >= before + 50000);
}

static void run_beside_high(void (*body)(void))
{
	pair_start(0, be_high);
	pair_children[1] = child_start(body);
	struct child_end end = pair_wait_for(1);

	pair_finish(0);
	child_assert_passed(&end);
}

TIMED_TEST(test_first_look_at_others, timed_run_on_simulator, look_for_others_while_aside)
TIMED_TEST(test_exit, run_beside_high, exit_while_aside)
TIMED_TEST(test_fork, run_beside_high, fork_while_aside)

/* --- clients of MPS ------------------------------------------------------------------------------------------------------------ */

static char mps[] = "/tmp/nvtaskset-mps-XXXXXX";

static void use_mps(void)
{
	char control[64];

	snprintf(mps, sizeof mps, "/tmp/nvtaskset-mps-XXXXXX");
	assert_non_null(mkdtemp(mps));
	snprintf(control, sizeof control, "%s/control", mps);
	int file = open(control, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	close(file);
}

static void leave_mps(void)
{
	char control[64];

	snprintf(control, sizeof control, "%s/control", mps);
	unlink(control);
	rmdir(mps);
}

/* Its channels are the server's: it is never put aside, and the kernel driver is not asked. */
static void be_client(unsigned int number, struct segment_revision revision)
{
	self = number;
	setenv("CUDA_MPS_PIPE_DIRECTORY", mps, 1);
	timed_open_gpu();
	timed_give(&revision);
	gpu_launch_empty(&gpu);
	timed_wait_for_state(SEGMENT_TIME_HELD);
	assert_true(timed_has_thread());
	kernel_was_asked_by(SHIM);
	pair_work(self, 2);
	assert_false(kernel_was_asked_by(SHIM));
	assert_int_equal(timed_look().state, SEGMENT_TIME_HELD);
}

static void be_high_client(void)
{
	be_client(0, of_rank(HIGH, 0));
	assert_int_equal(timed_look().held, 0);
}

static void be_low_client(void)
{
	be_client(1, of_rank(LOW, 0));
}

static void test_gives_way_to_clients(void **state)
{
	(void)state;
	use_mps();
	pair_start(0, be_high_client);
	pair_start(1, be_low);
	pair_wait_for_aside(1, 50000);
	pair_finish_both();
	leave_mps();
}

static void test_clients_go_on(void **state)
{
	(void)state;
	use_mps();
	pair_start(1, be_low_client);
	pair_start(0, be_high);
	pair_wait_for_done(0, 100);
	pair_wait_for_done(1, 50);
	pair_finish_both();
	leave_mps();
}

/* --- what is never put aside ---------------------------------------------------------------------------------------------------- */

static void be_low_with_managed_memory(void)
{
	const struct segment_revision revision = of_rank(LOW, 0);
	CUdeviceptr memory;

	self = 1;
	kernel_listen(note_slice);
	timed_open_gpu();
	gpu_check(cuMemAllocManaged(&memory, 4096, 1));
	timed_give(&revision);
	gpu_run(&gpu);
	timed_wait_for_state(SEGMENT_TIME_MANAGED);
	pair_work(self, 2);
	assert_int_equal(timed_look().aside_us, 0);
	assert_int_equal(timed_look().state, SEGMENT_TIME_MANAGED);
}

/* It has short time slices nevertheless: page faults are answered meanwhile. */
static void test_managed_memory(void **state)
{
	(void)state;
	gpu_load_driver();
	if (!gpu_is_simulated())
		gpu_skip("only for a simulated driver: it allocates managed memory");
	pair_start(1, be_low_with_managed_memory);
	pair_start(0, be_high);
	pair_wait_for_done(0, 50);
	wait_for_slice(1, true);
	pair_wait_for_done(0, 50);
	assert_true(slices_us[1] <= SHORT_US);
	pair_finish_both();
}

/* Found while it is aside, as its quota wants it for ten seconds: it is back at once, and goes on with short slices. */
static void come_to_use_managed_memory(void)
{
	struct segment_revision revision = of_rank(LOW, 0);
	CUdeviceptr memory;

	revision.quota = (struct segment_quota){.run_us = 1000, .period_us = 10000000};
	kernel_listen(note_slice);
	be_aside(revision);
	gpu_check(cuMemAllocManaged(&memory, 4096, 1));
	uint64_t aside_us = timed_look().aside_us;

	timed_wait_for_state(SEGMENT_TIME_MANAGED);
	wait_for_slice(1, true);
	timed_sleep_ms(QUIET_MS);
	assert_in_range(timed_look().aside_us, aside_us, aside_us + 100000);
	assert_true(timed_has_thread());
	atomic_store(&pair->pauses, true);
	gpu_check(cuCtxSynchronize());
}

static void test_managed_memory_later(void **state)
{
	(void)state;
	gpu_load_driver();
	if (!gpu_is_simulated())
		gpu_skip("only for a simulated driver: it allocates managed memory");
	run_beside_high(come_to_use_managed_memory);
}

#define BESIDE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BESIDE(test_higher_goes_first),
		BESIDE(test_pause),
		BESIDE(test_nobody_waits_for_ever),
		BESIDE(test_slices),
		BESIDE(test_slices_refused),
		BESIDE(test_unknown_work),
		BESIDE(test_weights),
		BESIDE(test_edits),
		BESIDE(test_killed),
		BESIDE(test_stopped),
		BESIDE(test_lower_one_stopped),
		BESIDE(test_first_look_at_others),
		BESIDE(test_exit),
		BESIDE(test_fork),
		BESIDE(test_gives_way_to_clients),
		BESIDE(test_clients_go_on),
		BESIDE(test_managed_memory),
		BESIDE(test_managed_memory_later),
	};

	live_alone();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
