#include "pair.h"

#include "../../cases.h"
#include "state/segment/find.h"
#include "timed.h"

struct pair *pair;
struct child pair_children[PAIR_PROGRAMS];

static char path[] = "/tmp/nvtaskset-gpu-XXXXXX";

/* --- the programs ---------------------------------------------------------------------------------------------------- */

void pair_note(unsigned int number, unsigned int more)
{
	atomic_fetch_add(&pair->programs[number].done, more);
	atomic_store(&pair->programs[number].is_ready, true);
}

void pair_work(unsigned int number, unsigned int kernels)
{
	CUevent ends[2];

	for (unsigned int i = 0; i < 2; i++)
		gpu_check(cuEventCreate(&ends[i], 0));
	for (unsigned int i = 0; !atomic_load(&pair->ends); i ^= 1) {
		while (number == 0 && atomic_load(&pair->pauses) && !atomic_load(&pair->ends))
			timed_sleep_ms(1);
		timed_launch(kernels);
		gpu_check(cuEventRecord(ends[i], NULL));
		if (cuEventQuery(ends[i ^ 1]) == CUDA_SUCCESS)
			atomic_fetch_add(&pair->programs[number].idle, 1);
		gpu_check(cuEventSynchronize(ends[i ^ 1]));
		pair_note(number, kernels);
	}
	gpu_check(cuCtxSynchronize());
}

/* --- their parent ---------------------------------------------------------------------------------------------------- */

int pair_set_up(void **state)
{
	snprintf(path, sizeof path, "/tmp/nvtaskset-gpu-XXXXXX");
	timed_share_gpu(path);
	pair = mmap(NULL, sizeof *pair, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return pair == MAP_FAILED ? -1 : 0;
}

int pair_tear_down(void **state)
{
	for (unsigned int i = 0; i < PAIR_PROGRAMS; i++) {
		if (pair_children[i].pid > 0) {
			kill(pair_children[i].pid, SIGKILL);
			pair_wait_for(i);
		}
	}
	munmap(pair, sizeof *pair);
	unsetenv("SIM_GPU");
	unlink(path);
	return 0;
}

struct child_end pair_wait_for(unsigned int number)
{
	struct child_end end = child_wait(&pair_children[number]);

	pair_children[number].pid = 0;
	return end;
}

void pair_start(unsigned int number, void (*body)(void))
{
	pair_children[number] = child_start(body);
	timed_until (atomic_load(&pair->programs[number].is_ready)) {
		siginfo_t info = {.si_pid = 0};

		waitid(P_PID, (id_t)pair_children[number].pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (info.si_pid != 0) {
			struct child_end child = pair_wait_for(number);

			atomic_store(&pair->ends, true);
			timed_skip_if_skipped(&child);
			child_assert_passed(&child);
		}
		timed_sleep_ms(1);
	}
}

void pair_finish(unsigned int number)
{
	atomic_store(&pair->ends, true);
	struct child_end end = pair_wait_for(number);

	child_assert_passed(&end);
}

void pair_finish_both(void)
{
	for (unsigned int i = 0; i < PAIR_PROGRAMS; i++)
		pair_finish(i);
}

struct segment_time pair_time_of(unsigned int number)
{
	struct segment segment;
	struct segment_time time;

	assert_int_equal(segment_open(&segment, pair_children[number].pid, NULL, NULL), SEGMENT_FOUND);
	segment_read_time(&segment, &time);
	segment_close(&segment);
	return time;
}

void pair_wait_for_aside(unsigned int number, uint64_t more_us)
{
	uint64_t before = pair_time_of(number).aside_us;

	timed_wait_until(pair_time_of(number).aside_us >= before + more_us);
}

unsigned int pair_done(unsigned int number)
{
	return atomic_load(&pair->programs[number].done);
}

void pair_wait_for_done(unsigned int number, unsigned int more)
{
	unsigned int before = pair_done(number);

	timed_wait_until(pair_done(number) >= before + more);
}
