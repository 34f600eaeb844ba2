/*
 * Programs that wait for each other across GPUs go on, whatever priorities and quotas they have on each: nobody stays aside for
 * ever, and nobody for long that has work on several GPUs.
 *
 * gpus: h200-x2
 */
#include "../alone.h"
#include "../cases.h"
#include "state/segment/segment.h"
#include "support/client.h"
#include "support/timed.h"

#define HIGH 80
#define LOW 20

static struct gpu_under_test gpus[2];

static void need_two(void)
{
	if (gpu_initialise() < 2)
		timed_leave_out("there is one GPU only");
}

static void open_gpus(void)
{
	need_two();
	timed_open_gpu();
	gpus[0] = gpu;
	gpu_open(&gpus[1], 1);
}

/* Of 1 to 2 ms each. */
static void launch_on(struct gpu_under_test *on, unsigned int kernels)
{
	gpu = *on;
	gpu_check(cuCtxSetCurrent(gpu.context));
	timed_launch(kernels);
}

/* --- a program with work on two GPUs ------------------------------------------------------------------------------------- */

#define LITTLE {.run_us = 1000, .period_us = 10000000}

/* Its quota would suspend it for ten seconds. */
TIMED(bound)
{
	const struct segment_revision little = {.quota = LITTLE};
	open_gpus();
	launch_on(&gpus[0], 1);
	timed_give_and_wait(&little);
	for (unsigned int i = 0; i < 2; i++)
		launch_on(&gpus[i], 500);
	timed_wait_until(timed_look().bounded >= 3);
	timed_give(&(struct segment_revision){.quota = {.run_us = 10000, .period_us = 10000}});
	for (unsigned int i = 0; i < 2; i++) {
		gpu_check(cuCtxSetCurrent(gpus[i].context));
		gpu_check(cuCtxSynchronize());
	}
}

/* With work on one of them, nobody waits for it elsewhere. */
TIMED(bound_is_for_several_gpus)
{
	const struct segment_revision little = {.quota = LITTLE};

	open_gpus();
	launch_on(&gpus[0], 1);
	timed_give_and_wait(&little);
	launch_on(&gpus[0], 500);
	timed_wait_until(timed_look().aside_us >= 500000);
	assert_int_equal(timed_look().bounded, 0);
}

/* --- ranks that wait for each other --------------------------------------------------------------------------------------- */

/* Two jobs of two ranks each. A rank keeps its GPU busy until the other rank of its job has taken the same step. On each GPU,
 * another job goes first. */
#define JOBS 2
#define STEPS 6

static struct {
	atomic_uint steps[JOBS][2]; /* of the ranks */
} *jobs;

static void (*give)(const struct segment_revision *revision); /* by which it obeys */

static struct segment_revision of_priority(unsigned int job, unsigned int rank)
{
	return (struct segment_revision){.rank = {.priority = (uint16_t)((job == rank ? HIGH : LOW) + 1)}};
}

/* There is always some work in flight, until the other rank is there, too. */
static void keep_busy(const atomic_uint *other, unsigned int step, double end)
{
	static CUevent ends[2];

	for (unsigned int i = 0; i < 2 && !ends[i]; i++)
		gpu_check(cuEventCreate(&ends[i], 0));
	timed_launch(1);
	gpu_check(cuEventRecord(ends[0], NULL));
	for (unsigned int i = 1; atomic_load(other) < step && timed_now_s() < end; i ^= 1) {
		timed_launch(1);
		gpu_check(cuEventRecord(ends[i], NULL));
		gpu_check(cuEventSynchronize(ends[i ^ 1]));
	}
}

static void take_steps(unsigned int job, unsigned int rank)
{
	double end = timed_now_s() + 2 * PATIENCE_S;

	gpu_initialise();
	if (rank == 0)
		timed_open_gpu();
	else
		gpu_open(&gpu, 1);
	const struct segment_revision revision = of_priority(job, rank);

	give(&revision);
	for (unsigned int step = 1; step <= STEPS; step++) {
		timed_work(1);
		atomic_store(&jobs->steps[job][rank], step);
		keep_busy(&jobs->steps[job][rank ^ 1], step, end);
	}
	assert_true(timed_now_s() < end);
}

static unsigned int its_job, its_rank; /* of the child that is started next */

static void be_rank(void)
{
	take_steps(its_job, its_rank);
}

static void run_jobs(void by(const struct segment_revision *revision))
{
	char paths[2][32];
	struct child children[JOBS][2];

	give = by;
	timed_run_and_pass(need_two);
	jobs = mmap(NULL, sizeof *jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(jobs != MAP_FAILED);
	for (its_rank = 0; its_rank < 2; its_rank++) {
		snprintf(paths[its_rank], sizeof paths[its_rank], "/tmp/nvtaskset-gpu-XXXXXX");
		timed_share_gpu(paths[its_rank]);
		for (its_job = 0; its_job < JOBS; its_job++)
			children[its_job][its_rank] = child_start(be_rank);
	}
	unsetenv("SIM_GPU");
	for (unsigned int i = 0; i < JOBS * 2; i++) {
		struct child_end end = child_wait(&children[i / 2][i % 2]);

		child_assert_passed(&end);
	}
	for (unsigned int rank = 0; rank < 2; rank++)
		unlink(paths[rank]);
	munmap(jobs, sizeof *jobs);
}

TEST(opposing_priorities)
{
	run_jobs(timed_give_and_wait);
}

/* Whose launches are held back. */
TEST_WITH(client_set_up, client_tear_down, opposing_priorities_of_clients)
{
	run_jobs(timed_give_to_client);
}

RUN_TESTS_ALONE(NULL, NULL, NULL, NULL)
