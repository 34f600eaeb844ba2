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

/* What the programs and their parent say to each other. */
#define PROGRAMS 2
static struct {
	atomic_bool ends, pauses; /* all; the first one */
	struct {
		atomic_bool is_ready;
		atomic_uint kernels; /* that have ended */
		_Atomic uint64_t slice_us; /* that it was given last, by the driver, too; 0: it was given none */
	} programs[PROGRAMS];
} *shared;

static char path[] = "/tmp/nvtaskset-gpu-XXXXXX";
static struct child children[PROGRAMS];

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
		atomic_store(&shared->programs[self].slice_us, *(const uint64_t *)(uintptr_t)call->parameters);
}

/* There is always some work in flight, but while it pauses. */
static void work(void)
{
	CUevent ends[2];

	for (unsigned int i = 0; i < 2; i++)
		gpu_check(cuEventCreate(&ends[i], 0));
	for (unsigned int i = 0; !atomic_load(&shared->ends); i ^= 1) {
		while (self == 0 && atomic_load(&shared->pauses) && !atomic_load(&shared->ends))
			timed_sleep_ms(1);
		timed_launch(2);
		gpu_check(cuEventRecord(ends[i], NULL));
		gpu_check(cuEventSynchronize(ends[i ^ 1]));
		atomic_fetch_add(&shared->programs[self].kernels, 2);
		atomic_store(&shared->programs[self].is_ready, true);
	}
	gpu_check(cuCtxSynchronize());
}

static void be(unsigned int number, struct segment_revision revision)
{
	self = number;
	kernel_listen(note_slice);
	timed_open_gpu();
	timed_give_and_wait(&revision);
	work();
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

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/nvtaskset-gpu-XXXXXX");
	timed_share_gpu(path);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? -1 : 0;
}

/* After a failure, children may be left. */
static int tear_down(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		if (children[i].pid > 0) {
			kill(children[i].pid, SIGKILL);
			child_wait(&children[i]);
		}
	}
	munmap(shared, sizeof *shared);
	unsetenv("SIM_GPU");
	unlink(path);
	return 0;
}

static struct child_end wait_for(unsigned int number)
{
	struct child_end end = child_wait(&children[number]);

	children[number].pid = 0;
	return end;
}

/* Once it has work in flight. One that was left out or has failed ends the test. */
static void start(unsigned int number, void (*body)(void))
{
	double end = timed_now_s() + PATIENCE_S;

	children[number] = child_start(body);
	while (!atomic_load(&shared->programs[number].is_ready) && timed_now_s() < end) {
		siginfo_t info = {.si_pid = 0};

		waitid(P_PID, (id_t)children[number].pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (info.si_pid != 0) {
			struct child_end child = wait_for(number);

			atomic_store(&shared->ends, true);
			timed_skip_if_skipped(&child);
			child_assert_passed(&child);
		}
		timed_sleep_ms(1);
	}
	assert_true(atomic_load(&shared->programs[number].is_ready));
}

static void finish(unsigned int number)
{
	atomic_store(&shared->ends, true);
	struct child_end end = wait_for(number);

	child_assert_passed(&end);
}

static void finish_both(void)
{
	finish(0);
	finish(1);
}

static struct segment_time time_of(unsigned int number)
{
	struct segment segment;
	struct segment_time time;

	assert_int_equal(segment_open(&segment, children[number].pid, NULL), SEGMENT_FOUND);
	segment_read_time(&segment, &time);
	segment_close(&segment);
	return time;
}

static void edit(unsigned int number, struct segment_revision wanted)
{
	struct segment segment;
	struct error error;

	assert_int_equal(segment_open(&segment, children[number].pid, NULL), SEGMENT_FOUND);
	if (segment_change(&segment, &wanted, NULL, &error) < 0)
		fail_msg("%s", error.reason);
	segment_close(&segment);
}

static void wait_for_aside(unsigned int number, uint64_t more_us)
{
	double end = timed_now_s() + PATIENCE_S;
	uint64_t before = time_of(number).aside_us;

	while (time_of(number).aside_us < before + more_us && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(time_of(number).aside_us >= before + more_us);
}

/* For longer than the time between two turns. */
#define QUIET_MS 300

static void wait_until_never_aside(unsigned int number)
{
	double end = timed_now_s() + PATIENCE_S;
	uint64_t before, after = time_of(number).aside_us;

	do {
		before = after;
		timed_sleep_ms(QUIET_MS);
		after = time_of(number).aside_us;
	} while (after != before && timed_now_s() < end);
	assert_int_equal(after, before);
}

static unsigned int kernels_of(unsigned int number)
{
	return atomic_load(&shared->programs[number].kernels);
}

static void wait_for_kernels(unsigned int number, unsigned int more)
{
	double end = timed_now_s() + PATIENCE_S;
	unsigned int before = kernels_of(number);

	while (kernels_of(number) < before + more && timed_now_s() < end)
		timed_sleep_ms(1);
	assert_true(kernels_of(number) >= before + more);
}

/* By itself, a program has a time slice of some milliseconds. */
#define SHORT_US 200

static void wait_for_slice(unsigned int number, bool is_short)
{
	double end = timed_now_s() + PATIENCE_S;
	bool is_so = false;

	while (!is_so && timed_now_s() < end) {
		uint64_t slice_us = atomic_load(&shared->programs[number].slice_us);

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
	start(1, be_low);
	start(0, be_high);
	wait_for_aside(1, 100000);
	unsigned int before[2] = {kernels_of(0), kernels_of(1)};

	wait_for_kernels(0, 200);
	unsigned int high = kernels_of(0) - before[0], low = kernels_of(1) - before[1];

	assert_int_equal(time_of(0).aside_us, 0);
	assert_int_equal(time_of(0).state, SEGMENT_TIME_IN_FORCE);
	assert_int_equal(time_of(1).state, SEGMENT_TIME_IN_FORCE);
	finish_both();
	if (high < 3 * low)
		fail_msg("%u kernels of the higher one, %u of the lower one", high, low);
}

/* In its turns alone, 200 kernels would take ten seconds and more. */
static void test_pause(void **state)
{
	(void)state;
	start(0, be_high);
	start(1, be_low);
	wait_for_aside(1, 50000);
	atomic_store(&shared->pauses, true);
	wait_until_never_aside(1);
	wait_for_kernels(1, 200);
	atomic_store(&shared->pauses, false);
	wait_for_aside(1, 50000);
	finish_both();
}

static void test_nobody_waits_for_ever(void **state)
{
	(void)state;
	start(0, be_high);
	start(1, be_low);
	wait_for_aside(1, 50000);
	wait_for_kernels(1, 6);
	finish_both();
}

/* The kernel driver is told, and once more when the higher one has gone. */
static void test_slices(void **state)
{
	(void)state;
	start(1, be_low);
	wait_for_kernels(1, 20);
	wait_for_slice(1, false);
	atomic_store(&shared->pauses, true);
	children[0] = child_start(be_high);
	wait_for_slice(1, true);
	wait_for_slice(0, false);
	kill(children[0].pid, SIGKILL);
	wait_for(0);
	wait_for_slice(1, false);
	finish(1);
}

/* Where the kernel driver refuses them: it is put aside as ever, and says so once. */
static void test_slices_refused(void **state)
{
	(void)state;
	start(1, be_low_without_slices);
	start(0, be_high);
	wait_for_aside(1, 50000);
	atomic_store(&shared->pauses, true);
	wait_until_never_aside(1);
	atomic_store(&shared->ends, true);
	struct child_end end = wait_for(1);
	const char *said = strstr(end.errors, "the priority is not in force");

	child_assert_passed(&end);
	assert_non_null(said);
	assert_null(strstr(said + 1, "the priority is not in force"));
	finish(0);
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
	work();
}

static void test_unknown_work(void **state)
{
	(void)state;
	start(0, be_high_and_unknown);
	start(1, be_low);
	wait_for_slice(1, true);
	wait_until_never_aside(1);
	finish_both();
}

/* --- weights ----------------------------------------------------------------------------------------------------------------- */

/* 3:1; in any case clearly more than one half, and not all. */
static void test_weights(void **state)
{
	(void)state;
	start(0, be_heavy);
	start(1, be_light);
	wait_for_aside(1, 30000);
	unsigned int before[2] = {kernels_of(0), kernels_of(1)};

	wait_for_kernels(0, 600);
	unsigned int heavy = kernels_of(0) - before[0], light = kernels_of(1) - before[1];

	finish_both();
	if (2 * heavy < 3 * light || heavy > 6 * light)
		fail_msg("%u kernels with a weight of 300, %u with 100", heavy, light);
}

/* --- edits -------------------------------------------------------------------------------------------------------------------- */

static void test_edits(void **state)
{
	(void)state;
	start(0, be_usual_first);
	start(1, be_usual);
	edit(0, of_rank(HIGH, 0));
	wait_for_aside(1, 50000);
	edit(1, of_rank(SEGMENT_PRIORITY_MAX, 0));
	wait_for_aside(0, 50000);
	wait_until_never_aside(1);
	finish_both();
}

/* --- those that do not go on -------------------------------------------------------------------------------------------------- */

static void test_killed(void **state)
{
	(void)state;
	start(0, be_high);
	start(1, be_low);
	wait_for_aside(1, 50000);
	kill(children[0].pid, SIGKILL);
	wait_for(0);
	wait_until_never_aside(1);
	wait_for_kernels(1, 200);
	finish(1);
}

/* A simulated GPU goes on giving time slices to who is stopped, and next to nothing to short ones: so no kernels are counted. */
static void test_stopped(void **state)
{
	(void)state;
	start(0, be_high);
	start(1, be_low);
	wait_for_aside(1, 50000);
	kill(children[0].pid, SIGSTOP);
	wait_until_never_aside(1);
	kill(children[0].pid, SIGCONT);
	wait_for_aside(1, 50000);
	finish_both();
}

/* Stopped while it is aside or not, it holds up nobody. */
static void test_lower_one_stopped(void **state)
{
	(void)state;
	start(0, be_high);
	start(1, be_low);
	wait_for_aside(1, 50000);
	kill(children[1].pid, SIGSTOP);
	wait_for_kernels(0, 100);
	kill(children[1].pid, SIGCONT);
	wait_for_aside(1, 50000);
	finish_both();
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
	start(0, be_high);
	children[1] = child_start(body);
	struct child_end end = wait_for(1);

	finish(0);
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
	work();
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
	start(0, be_high_client);
	start(1, be_low);
	wait_for_aside(1, 50000);
	finish_both();
	leave_mps();
}

static void test_clients_go_on(void **state)
{
	(void)state;
	use_mps();
	start(1, be_low_client);
	start(0, be_high);
	wait_for_kernels(0, 100);
	wait_for_kernels(1, 50);
	finish_both();
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
	work();
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
	start(1, be_low_with_managed_memory);
	start(0, be_high);
	wait_for_kernels(0, 50);
	wait_for_slice(1, true);
	wait_for_kernels(0, 50);
	assert_true(shared->programs[1].slice_us <= SHORT_US);
	finish_both();
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
	atomic_store(&shared->pauses, true);
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
