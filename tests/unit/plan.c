/*
 * Sizes of partitions, and which tasks share one (tools/nvtaskset/plan/plan.h): against a model of a processor, and against all
 * ways that there are.
 */
#include "../cases.h"

#include "plan/plan.h"

#define TPCS 66
#define MS UINT64_C(1000000)

/* --- fixed priorities ----------------------------------------------------------------------------------------------------- */

/* How long the last task's first job takes on a processor if all begin at once; up to `limit`. */
static uint64_t response_by_steps(const struct schedule_task *tasks, unsigned int count, uint64_t limit)
{
	uint64_t left[8] = {0}, now = 0, end = 0;

	for (; now < limit && end == 0; now++) {
		unsigned int runs = 0;

		for (unsigned int i = 0; i < count; i++) {
			if (now % tasks[i].period_ns == 0 && (i < count - 1 || now == 0))
				left[i] += tasks[i].time_ns;
		}
		while (runs < count && left[runs] == 0)
			runs++;
		if (runs < count)
			left[runs]--;
		if (left[count - 1] == 0)
			end = now + 1;
	}
	return end;
}

TEST(responses_are_those_of_a_processor)
{
	unsigned int met = 0, missed = 0;

	for (random_state = 1; met + missed < 2000;) {
		struct schedule_task tasks[5];

		for (unsigned int i = 0; i < 5; i++) {
			uint64_t period = 20 + some_below(81);

			tasks[i] = (struct schedule_task){.period_ns = period, .deadline_ns = period, .time_ns = 1 + some_below(15)};
		}
		bool all = schedule_fixed(tasks, 5), each = true;

		for (unsigned int i = 0; i < 5; i++) {
			uint64_t seen = response_by_steps(tasks, i + 1, tasks[i].period_ns);

			assert_true(!each || tasks[i].response_ns == (seen > 0 ? seen : SCHEDULE_NEVER));
			each = each && seen > 0;
		}
		assert_true(all == each);
		met += all;
		missed += !all;
	}
	assert_true(met > 200 && missed > 200);
}

TEST(a_lower_tasks_launch_and_a_quota_count)
{
	struct schedule_task all[] = {
		{.period_ns = 100, .time_ns = 10, .jitter_ns = 90, .overrun_ns = 5}, /* a quota */
		{.period_ns = 100, .deadline_ns = 50, .time_ns = 30, .launch_ns = 30},
		{.period_ns = 1000, .deadline_ns = 1000, .time_ns = 200, .launch_ns = 20},
	}, *tasks = all + 1;

	assert_true(schedule_fixed(tasks, 2));
	assert_int_equal(tasks[0].response_ns, 50);
	assert_int_equal(tasks[1].response_ns, 200 + 3 * 30); /* the third one begins just when it ends: at 290, not at 300 */
	tasks[1].launch_ns = 21;
	assert_false(schedule_fixed(tasks, 2));
	tasks[1].launch_ns = 5;
	assert_false(schedule_fixed(all, 3));
	tasks[0].deadline_ns = 60;
	assert_true(schedule_fixed(all, 3));
	/* Twice, at the end of one period and the beginning of the next. */
	assert_int_equal(all[1].response_ns, 30 + 5 + 2 * 10 + 5);
}

/* --- problems --------------------------------------------------------------------------------------------------------------- */

static struct {
	struct plan_task list[PLAN_TASKS];
	uint64_t alone[PLAN_TASKS][PLAN_TPCS], beside[PLAN_TASKS][PLAN_TPCS];
} made;

/* a / m + b, and so many times longer in conflict. */
static void make_task(unsigned int number, double a_ms, double b_ms, double conflict, double period_ms, double deadline_ms)
{
	for (unsigned int tpcs = 1; tpcs < PLAN_TPCS; tpcs++) {
		made.alone[number][tpcs] = (uint64_t)((a_ms / tpcs + b_ms) * 1e6);
		made.beside[number][tpcs] = (uint64_t)((a_ms / tpcs + b_ms) * conflict * 1e6);
	}
	made.list[number] = (struct plan_task){
		.period_ns = (uint64_t)(period_ms * 1e6), .deadline_ns = (uint64_t)(deadline_ms * 1e6),
		.alone_ns = made.alone[number], .beside_ns = made.beside[number],
	};
}

static struct plan_problem problem_of(unsigned int count, unsigned int tpcs)
{
	return (struct plan_problem){.tpcs = tpcs, .count = count, .tasks = made.list};
}

/* As the paper's section 7.1 has them. */
static void make_random(unsigned int count, unsigned int load_percent)
{
	static const double periods[] = {50, 100, 200, 400, 500, 1000, 2000, 4000};

	for (unsigned int i = 0; i < count; i++) {
		bool is_memory = some_below(2);
		double period = periods[some_below(8)], a = period * (double)(1 + some_below(2 * load_percent + 1)) / 100;

		make_task(i, a, (is_memory ? 0.1 : 0.02) * a, is_memory ? 2.3 : 1.2, period, 0.75 * period);
		made.list[i].is_memory = is_memory;
	}
}

static struct plan plan; /* that was made last */

/* Each task is in one partition, which is large enough, and not larger than it must be; the sum is right. */
static void check_plan(const struct plan_problem *problem)
{
	struct tpcset seen = {{0}};
	unsigned int sum = 0;

	for (unsigned int i = 0; i < plan.count; i++) {
		const struct plan_partition *partition = &plan.partitions[i];

		assert_false(tpcset_overlap(&seen, &partition->tasks));
		seen = tpcset_or(&seen, &partition->tasks);
		assert_int_equal(plan_size(problem, &partition->tasks, 1, problem->tpcs), partition->tpcs);
		sum += partition->tpcs;
	}
	assert_each(tpcset_count(&seen), problem->count, plan.tpcs, sum);
	assert_true(plan.fits == (plan.tpcs <= problem->tpcs));
}

/* By size and by work, with and without the test of pairs: as far as it must, and on and on. */
static const struct plan_rules ways[] = {
	{false, false, false}, {false, true, false}, {true, false, false}, {true, true, false},
	{false, false, true},  {false, true, true},  {true, false, true},  {true, true, true},
};

/* --- the heuristic ---------------------------------------------------------------------------------------------------------- */

TEST(a_task_gets_the_smallest_partition_that_does)
{
	make_task(0, 100, 1, 1, 50, 20); /* 100 / 6 + 1 < 20 */
	make_task(1, 10, 1, 1, 50, 11);
	const struct plan_problem problem = problem_of(2, TPCS);

	assert_true(plan_allocate(&plan, &problem, ways[0]));
	assert_each(plan.count, 2, plan.partitions[0].tpcs, 6, plan.partitions[1].tpcs, 1, plan.merges, 0);
}

TEST(a_deadline_that_no_size_meets_is_named)
{
	make_task(0, 1, 1, 1, 50, 20);
	make_task(1, 100, 21, 1, 50, 20);
	const struct plan_problem problem = problem_of(2, TPCS);

	assert_false(plan_make(&plan, &problem));
	assert_int_equal(plan.impossible, 1);
	assert_true(plan_search(&plan, &problem));
	assert_int_equal(plan.impossible, 1);
	assert_false(plan.fits);
}

TEST(who_does_not_fit_shares_and_not_with_its_kind)
{
	/* Two that copy and two that compute, on two TPCs: of one kind they would take too long together. */
	for (unsigned int i = 0; i < 4; i++) {
		make_task(i, 20, 0, 2.6, 100, 100);
		made.list[i].is_memory = i < 2;
	}
	const struct plan_problem problem = problem_of(4, 2);

	for (size_t i = 0; i < 4; i++) {
		ROW("way %zu", i);
		assert_true(plan_allocate(&plan, &problem, ways[i]));
		assert_int_equal(plan.count, 2);
		for (unsigned int part = 0; part < 2; part++) {
			const struct tpcset *tasks = &plan.partitions[part].tasks;

			assert_true(tpcset_has(tasks, 0) != tpcset_has(tasks, 1) && tpcset_has(tasks, 2) != tpcset_has(tasks, 3));
		}
	}
}

static void assert_alone(uint32_t task)
{
	for (unsigned int i = 0; i < plan.count; i++)
		assert_true(!tpcset_has(&plan.partitions[i].tasks, task) || tpcset_count(&plan.partitions[i].tasks) == 1);
}

TEST(who_must_be_alone_is)
{
	for (unsigned int i = 0; i < 4; i++)
		make_task(i, 10, 0, 1, 100, 100);
	made.list[2].is_alone = true;
	const struct plan_problem problem = problem_of(4, 2);

	for (size_t i = 0; i < 4; i++) {
		ROW("way %zu", i);
		assert_true(plan_allocate(&plan, &problem, ways[i]));
		assert_int_equal(plan.count, 2);
		assert_true(plan.forbidden >= (ways[i].tests_pairs ? 3 : 0));
		assert_alone(2);
	}
	assert_true(plan_search(&plan, &problem) && plan.fits);
	assert_alone(2);
}

TEST(each_way_makes_a_whole_plan)
{
	unsigned int fit = 0, merged = 0;

	random_state = 7;
	for (int round = 0; round < 60; round++) {
		make_random(30, 20 + (unsigned int)round * 2);
		const struct plan_problem problem = problem_of(30, TPCS);

		for (size_t i = 0; i < COUNT_OF(ways); i++) {
			ROW("round %d, way %zu", round, i);
			plan_allocate(&plan, &problem, ways[i]);
			if (plan.impossible != PLAN_NONE)
				break;
			check_plan(&problem);
			assert_int_equal(plan.count + plan.merges, 30);
			fit += plan.fits;
			merged += plan.merges > 0;
		}
	}
	assert_true(fit > 50 && merged > 50);
}

/* --- the search -------------------------------------------------------------------------------------------------------------- */

/* All ways to put the tasks from `next` on into the first `count` partitions, or into a new one. */
static unsigned int fewest(const struct plan_problem *problem, struct tpcset sets[], unsigned int count, uint32_t next)
{
	unsigned int best = UINT32_MAX, sum = 0;

	if (next == problem->count) {
		for (unsigned int i = 0; i < count; i++) {
			unsigned int tpcs = plan_size(problem, &sets[i], 1, problem->tpcs);

			sum = tpcs == 0 ? 100000 : sum + tpcs;
		}
		return sum;
	}
	for (unsigned int i = 0; i <= count; i++) {
		struct tpcset kept = sets[i];

		tpcset_add(&sets[i], next);
		unsigned int found = fewest(problem, sets, i == count ? count + 1 : count, next + 1);

		best = found < best ? found : best;
		sets[i] = kept;
	}
	return best;
}

TEST(the_search_finds_the_best_of_all_ways)
{
	static struct plan heuristic;
	unsigned int worse = 0;

	random_state = 3;
	for (int round = 0; round < 60; round++) {
		struct tpcset sets[8] = {{{0}}};

		make_random(6, 60);
		const struct plan_problem problem = problem_of(6, TPCS);

		ROW("round %d", round);
		assert_true(plan_search(&plan, &problem));
		if (plan.impossible != PLAN_NONE)
			continue;
		check_plan(&problem);
		assert_int_equal(plan.tpcs, fewest(&problem, sets, 0, 0));
		for (size_t i = 4; i < COUNT_OF(ways); i++) {
			plan_allocate(&heuristic, &problem, ways[i]);
			assert_true(heuristic.tpcs >= plan.tpcs);
			worse += heuristic.tpcs > plan.tpcs;
		}
	}
	assert_true(worse < 60);
	make_random(PLAN_EXACT + 1, 10);
	const struct plan_problem large = problem_of(PLAN_EXACT + 1, TPCS);

	assert_false(plan_search(&plan, &large));
}

/* --- the rest ---------------------------------------------------------------------------------------------------------------- */

TEST(a_quota_is_what_the_deadlines_leave)
{
	make_task(0, 60, 0, 1, 100, 100);
	const struct plan_problem problem = problem_of(1, 1);

	assert_true(plan_allocate(&plan, &problem, ways[0]));
	/* Ten periods, and one more at the border, in 40 ms. */
	assert_int_equal(plan_quota(&problem, &plan.partitions[0], 1, 10 * MS, 0), 3 * MS);
	assert_int_equal(plan_quota(&problem, &plan.partitions[0], 1, 10 * MS, 8 * MS), 2 * MS);
	assert_int_equal(plan_quota(&problem, &plan.partitions[0], 1, 10 * MS, 41 * MS), 0);
	/* Each of two: 2 ms would take 44 ms. */
	assert_int_equal(plan_quota(&problem, &plan.partitions[0], 2, 10 * MS, 0), 1 * MS);
	assert_int_equal(plan_quota(&problem, &plan.partitions[0], 3, 10 * MS, 8 * MS), 0);
}

TEST(the_deadline_that_has_to_give_least_is_named)
{
	make_task(0, 30, 0, 1, 10, 10);
	make_task(1, 30, 0, 1, 10, 10);
	make_task(2, 40, 0, 1, 10, 10);
	struct plan_problem problem = problem_of(3, 9);
	struct plan_relief relief = plan_relieve(&problem);

	assert_int_equal(relief.task, 2);
	assert_in_range(relief.deadline_ns, 13 * MS, 13500000); /* 40 / 3 */
	/* With only three TPCs, none of them alone is enough. */
	problem.tpcs = 3;
	assert_int_equal(plan_relieve(&problem).task, PLAN_NONE);
	make_task(1, 1, 11, 1, 10, 10);
	problem.tpcs = 20;
	relief = plan_relieve(&problem);
	assert_int_equal(relief.task, 1);
	assert_in_range(relief.deadline_ns, 11 * MS, 12 * MS);
}

/* A hundredth of 50 ns is nothing. */
TEST(a_search_among_nanoseconds_ends)
{
	for (unsigned int i = 0; i < 2; i++)
		make_task(i, 0.00264, 0, 1, 0.0002, 0.00005);
	const struct plan_problem problem = problem_of(2, TPCS);

	alarm(30);
	assert_in_range(plan_relieve(&problem).deadline_ns, 51, 200);
	alarm(0);
}

TEST(fifty_tasks_take_less_than_a_second)
{
	struct timespec begin, end;

	if (getenv("EMULATED"))
		skip_because("an emulated processor is slower");
	random_state = 11;
	make_random(50, 120);
	const struct plan_problem problem = problem_of(50, TPCS);

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	plan_make(&plan, &problem);
	plan_relieve(&problem);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;

	print_message("%u TPCs, %.3f s\n", plan.tpcs, seconds);
	assert_true(seconds < 1);
}

RUN_TESTS(NULL, NULL)
