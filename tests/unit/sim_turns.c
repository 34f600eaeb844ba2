/*
 * How programs share a simulated GPU, and what that costs: the costs are counted here, by a clock that the test has. The simulator
 * must not agree with src/ by construction: so what follows from twice and half the costs is said here.
 *
 * link: sim.a
 */
#include "../cases.h"
#include "process.h"
#include "sets.h"
#include "../sim/turns.h"

#define US UINT64_C(1000)
#define CHANGE (190 * US) /* hardware.md, "Time slices" */

static char gpu[] = "/tmp/nvtaskset-sim-XXXXXX", mps[] = "/tmp/nvtaskset-mps-XXXXXX";
static pid_t other;

FIXTURE(set_up)
{
	strcpy(gpu + sizeof gpu - 7, "XXXXXX");
	strcpy(mps + sizeof mps - 7, "XXXXXX");
	int file = mkstemp(gpu);

	assert_non_null(mkdtemp(mps));
	unsetenv("SIM_COSTS");
	assert_int_equal(close(file), 0);
	setenv("SIM_GPU", gpu, 1);
	setenv("CUDA_MPS_PIPE_DIRECTORY", mps, 1);
}

static void end_other(void)
{
	if (other > 0)
		end_child(other);
	other = 0;
}

FIXTURE(tear_down)
{
	end_other();
	unlink(text_of("%s/control", mps));
	assert_int_equal(unlink(gpu) | rmdir(mps), 0);
}

/* Each case is a process of its own, since a process has one place for ever. */
static void in_a_child(void (*body)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		body();
		end_other();
		_exit(0);
	}
	assert_ends_well(pid);
}

/* Another program, which wants to run. */
static uint64_t its_slice_us;
static struct tpcset its_tpcs;

static void be_other(char order)
{
	turns_begin(its_slice_us, &its_tpcs);
}

static void start_other(uint64_t slice_us, unsigned int first, unsigned int last)
{
	its_slice_us = slice_us;
	its_tpcs = range(first, last);
	other = process_start(be_other).pid;
}

/* Of so much time, from any moment on. */
static uint64_t runs_for(uint64_t span, uint64_t now)
{
	uint64_t end = now + span, sum = 0, until;

	for (; now < end; now = until) {
		double share = turns_share(now, &until);

		assert_true(until > now);
		until = until < end ? until : end;
		sum += (uint64_t)((double)(until - now) * share);
	}
	return sum;
}

static void take_turns(uint64_t own_us, uint64_t others_us, uint64_t change)
{
	const struct tpcset all = range(0, 65);

	start_other(others_us, 0, 65);
	turns_begin(own_us, &all);
	uint64_t cycle = (own_us + others_us) * US + 2 * change;

	for (uint64_t now = 12345; now < 12345 + cycle; now += 77 * US)
		assert_int_equal(runs_for(10 * cycle, now), 10 * own_us * US);
	end_other();
	assert_int_equal(runs_for(cycle, 1), cycle);
	turns_end();
}

TEST_BY(in_a_child, turns)
{
	take_turns(2048, 2048, CHANGE);
	take_turns(16000, 1, CHANGE);
	setenv("SIM_COSTS", "50", 1);
	take_turns(2048, 100, CHANGE / 2);
	setenv("SIM_COSTS", "200", 1);
	take_turns(100, 2048, CHANGE * 2);
}

static void share_tpcs(unsigned int first, unsigned int last, double expected)
{
	const struct tpcset own = range(0, 7);
	uint64_t until;

	start_other(2048, first, last);
	turns_begin(2048, &own);
	assert_true(turns_share(1, &until) == expected);
	turns_end();
	end_other();
}

TEST_BY(in_a_child, side_by_side)
{
	close(open(text_of("%s/control", mps), O_CREAT | O_WRONLY, 0600));
	share_tpcs(0, 7, 0.5);
	share_tpcs(4, 11, 0.75);
	share_tpcs(8, 65, 1);
}

RUN_TESTS(set_up, tear_down)
