/*
 * Usage: plans TASKS SETS SEED
 *
 * The simulation of Zahaf et al. (2021), section 7, with the planning of nvtaskset: for each total utilization from 2 to 68, so many
 * sets of so many tasks. Prints lines "TIMES,LOAD,WAY,QUANTITY,MEAN", each the mean over the sets. TIMES says what b is in a / m + b:
 *
 *   written   a part of the time that the task takes on one SM, as section 7.1 has it
 *   scaled    that part of the time that it takes on all 68 SMs
 *
 * WAY is 1G, one partition for all; SMS or BF, with -ACT where pairs are tested first, or else -INA. QUANTITY:
 *
 *   schedulable   percent of the sets
 *   work          utilization on one SM, times the factor of conflicts: of the sets that this way schedules
 *   least, most   the same without any conflict, and if all tasks were in conflict: of all sets
 *   partitions    of the sets that this way schedules
 *   us            for one set
 */
#include "base/extremes.h"
#include "bench.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMS 68
#define MS 1e6
#define FULL (1 - 1e-9) /* of the time: nearer to all of it, the longest busy period is too long to be looked through */

/* --- earliest deadline first, preemptive -------------------------------------------------------------------------------------
 * The paper leaves the policy in a partition open; its complexity names the hyperperiod, as the processor-demand criterion has it
 * (Baruah et al. 1990). These are the points that QPA looks at (Zhang and Burns 2009). */

static uint64_t rounded_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/* All jobs that come and must end within any stretch of this length. */
static uint64_t demand(const struct schedule_task *tasks, unsigned int count, uint64_t length)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (length >= tasks[i].deadline_ns)
			sum += ((length - tasks[i].deadline_ns) / tasks[i].period_ns + 1) * tasks[i].time_ns;
	}
	return sum;
}

/* The last deadline before `end`; 0: there is none. */
static uint64_t deadline_before(const struct schedule_task *tasks, unsigned int count, uint64_t end)
{
	uint64_t last = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (tasks[i].deadline_ns < end)
			last = max_u64(last, (end - 1 - tasks[i].deadline_ns) / tasks[i].period_ns * tasks[i].period_ns + tasks[i].deadline_ns);
	}
	return last;
}

/* How long the partition can be busy without a pause, if all come at once; at most `limit`. */
static uint64_t busy_period(const struct schedule_task *tasks, unsigned int count, uint64_t limit)
{
	uint64_t length = 0, next = 1;

	while (next > length && next < limit) {
		length = next;
		next = 0;
		for (unsigned int i = 0; i < count; i++)
			next += rounded_up(length, tasks[i].period_ns) * tasks[i].time_ns;
	}
	return min_u64(next, limit);
}

static bool demand_is_met(const struct schedule_task *tasks, unsigned int count, uint64_t limit)
{
	uint64_t first = UINT64_MAX, at = deadline_before(tasks, count, limit + 1);
	bool is_met = true;

	for (unsigned int i = 0; i < count; i++)
		first = min_u64(first, tasks[i].deadline_ns);
	while (is_met && at >= first) {
		uint64_t wanted = demand(tasks, count, at);

		is_met = wanted <= at;
		at = wanted < at ? wanted : deadline_before(tasks, count, at);
	}
	return is_met;
}

static bool edf(struct schedule_task *tasks, unsigned int count)
{
	double share = 0, density = 0, slack = 0;
	uint64_t longest = 0;

	for (unsigned int i = 0; i < count; i++) {
		double part = (double)tasks[i].time_ns / (double)tasks[i].period_ns;

		share += part;
		density += (double)tasks[i].time_ns / (double)tasks[i].deadline_ns;
		slack += part * (double)(tasks[i].period_ns - tasks[i].deadline_ns);
		longest = max_u64(longest, tasks[i].deadline_ns);
	}
	return density <= FULL ||
	       (share <= FULL && demand_is_met(tasks, count, busy_period(tasks, count, max_u64(longest, (uint64_t)(slack / (1 - share)) + 1))));
}

/* --- sets of tasks ------------------------------------------------------------------------------------------------------------- */

static const double periods[] = {50, 100, 200, 400, 500, 1000, 2000, 4000};

static const size_t period_count = sizeof periods / sizeof periods[0];

static struct set {
	unsigned int count;
	struct plan_task tasks[PLAN_TASKS];
	uint64_t alone[PLAN_TASKS][SMS + 1], beside[PLAN_TASKS][SMS + 1];
	double shares[PLAN_TASKS];
} set;

/* UUniFast (Bini and Buttazzo 2005); it is discarded, and drawn again, where a task could not meet its deadline on all SMs. */
static void draw_shares(double total, double most_share)
{
	bool is_good;

	do {
		double left = total;

		is_good = true;
		for (unsigned int i = 0; i < set.count; i++) {
			double next = i + 1 < set.count ? left * pow(drand48(), 1.0 / (double)(set.count - i - 1)) : 0;

			set.shares[i] = left - next;
			is_good = is_good && set.shares[i] <= most_share;
			left = next;
		}
	} while (!is_good);
}

static double part_of(bool is_memory, bool is_scaled)
{
	return (is_memory ? 0.1 : 0.02) / (is_scaled ? SMS : 1);
}

static double factor_of(bool is_memory)
{
	return is_memory ? 2.3 : 1.2;
}

static void make_task(unsigned int number, bool is_scaled)
{
	bool is_memory = drand48() <= 0.5;
	double period = periods[(size_t)(drand48() * (double)period_count)], a = set.shares[number] * period, b = part_of(is_memory, is_scaled) * a;

	for (unsigned int sms = 1; sms <= SMS; sms++) {
		set.alone[number][sms] = (uint64_t)((a / sms + b) * MS);
		set.beside[number][sms] = (uint64_t)((a / sms + b) * factor_of(is_memory) * MS);
	}
	set.tasks[number] = (struct plan_task){
		.period_ns = (uint64_t)(period * MS),
		.deadline_ns = (uint64_t)(0.75 * period * MS),
		.is_memory = is_memory,
		.alone_ns = set.alone[number],
		.beside_ns = set.beside[number],
	};
}

static void make_set(unsigned int count, double load, bool is_scaled)
{
	set.count = count;
	/* The factor of the longest: memory, on all SMs. */
	draw_shares(load, 0.75 / (1.0 / SMS + part_of(true, is_scaled)));
	for (unsigned int i = 0; i < count; i++)
		make_task(i, is_scaled);
}

/* --- ways ------------------------------------------------------------------------------------------------------------------------ */

static const struct way {
	const char *name;
	bool is_whole;
	struct plan_rules rules;
} ways[] = {
	{"1G", true, {.by_work = false}},
	{"SMS-INA", false, {.by_work = false}},
	{"SMS-ACT", false, {.tests_pairs = true}},
	{"BF-INA", false, {.by_work = true}},
	{"BF-ACT", false, {.by_work = true, .tests_pairs = true}},
};

#define WAYS (sizeof ways / sizeof ways[0])

static bool allocate_whole(struct plan *plan, const struct plan_problem *problem)
{
	*plan = (struct plan){.count = 1};
	for (uint32_t i = 0; i < problem->count; i++)
		tpcset_add(&plan->partitions[0].tasks, i);
	plan->fits = plan_size(problem, &plan->partitions[0].tasks, SMS, SMS) == SMS;
	return plan->fits;
}

/* Whether another task of its kind is in the set. */
static bool has_conflict(const struct plan_problem *problem, const struct tpcset *tasks, uint32_t task)
{
	unsigned int alike = 0;

	for (uint32_t i = 0; i < problem->count; i++)
		alike += tpcset_has(tasks, i) && problem->tasks[i].is_memory == problem->tasks[task].is_memory;
	return alike > 1;
}

static double work_of(const struct plan *plan, const struct plan_problem *problem)
{
	double work = 0;

	for (unsigned int part = 0; part < plan->count; part++) {
		for (uint32_t i = 0; i < problem->count; i++) {
			if (tpcset_has(&plan->partitions[part].tasks, i))
				work += set.shares[i] * (has_conflict(problem, &plan->partitions[part].tasks, i) ? factor_of(set.tasks[i].is_memory) : 1);
		}
	}
	return work;
}

/* Whether the tasks cannot fit (lemma 1): even if none had to wait for another, there would be too much to do. */
static bool is_hopeless(const struct plan_problem *problem)
{
	double sum = 0;

	for (unsigned int i = 0; i < problem->count; i++) {
		const struct plan_task *task = &problem->tasks[i];
		double least = -1;

		for (unsigned int tpcs = 1; tpcs <= problem->tpcs; tpcs++) {
			double part = (double)task->alone_ns[tpcs] / (double)task->period_ns * tpcs;

			least = least < 0 || part < least ? part : least;
		}
		sum += least;
	}
	return sum > problem->tpcs;
}

struct sums {
	double schedulable, work, partitions, us;
};

static void add(struct sums *sums, const struct way *way, const struct plan_problem *problem)
{
	static struct plan plan;
	int64_t begin = bench_now();
	bool fits = !is_hopeless(problem) && (way->is_whole ? allocate_whole(&plan, problem) : plan_allocate(&plan, problem, way->rules));

	sums->us += (double)(bench_now() - begin) / 1e3;
	sums->schedulable += fits;
	sums->work += fits ? work_of(&plan, problem) : 0;
	sums->partitions += fits ? plan.count : 0;
}

static void simulate(unsigned int count, unsigned int sets, unsigned int load, bool is_scaled)
{
	struct sums sums[WAYS] = {{0}};
	const char *times = is_scaled ? "scaled" : "written";
	double most_work = 0;

	for (unsigned int i = 0; i < sets; i++) {
		const struct plan_problem problem = {.tpcs = SMS, .count = count, .tasks = set.tasks, .test = edf};

		make_set(count, load, is_scaled);
		for (size_t way = 0; way < WAYS; way++)
			add(&sums[way], &ways[way], &problem);
		for (unsigned int task = 0; task < count; task++)
			most_work += set.shares[task] * factor_of(set.tasks[task].is_memory);
	}
	printf("%s,%u,bounds,least,%u\n%s,%u,bounds,most,%.3f\n", times, load, load, times, load, most_work / sets);
	for (size_t way = 0; way < WAYS; way++) {
		printf("%s,%u,%s,schedulable,%.0f\n", times, load, ways[way].name, sums[way].schedulable / sets * 100);
		printf("%s,%u,%s,us,%.1f\n", times, load, ways[way].name, sums[way].us / sets);
		if (sums[way].schedulable > 0)
			printf("%s,%u,%s,work,%.3f\n%s,%u,%s,partitions,%.2f\n", times, load, ways[way].name, sums[way].work / sums[way].schedulable, times, load,
			       ways[way].name, sums[way].partitions / sums[way].schedulable);
	}
	fflush(stdout);
}

int main(int count, char **arguments)
{
	if (count != 4)
		bench_fail("usage: plans TASKS SETS SEED");
	unsigned int tasks = (unsigned int)bench_number(arguments[1], "TASKS"), sets = (unsigned int)bench_number(arguments[2], "SETS");

	/* Of fewer, no set can have the largest utilization. */
	if (tasks < 20 || tasks > PLAN_TASKS || sets < 1)
		bench_fail("20 to %d tasks, and 1 set or more", PLAN_TASKS);
	srand48((long)bench_number(arguments[3], "SEED"));
	for (int is_scaled = 0; is_scaled < 2; is_scaled++) {
		for (unsigned int load = 2; load <= SMS; load += 2)
			simulate(tasks, sets, load, is_scaled);
	}
	return EXIT_SUCCESS;
}
