/* Whether tasks meet their deadlines in one partition, and the TPCs for that. */
#include "plan.h"

#include "base/extremes.h"

#define MS UINT64_C(1000000)

/* The response time of a task below `above` tasks, which meet their deadlines: no number is too large. */
static uint64_t response(const struct schedule_task *tasks, unsigned int above, unsigned int count)
{
	const struct schedule_task *task = &tasks[above];
	uint64_t blocking = 0, length = 0, next;

	for (unsigned int i = above + 1; i < count; i++)
		blocking = max_u64(blocking, tasks[i].launch_ns);
	next = task->time_ns + blocking;
	while (next > length && next <= task->deadline_ns) {
		length = next;
		next = task->time_ns + blocking;
		for (unsigned int i = 0; i < above; i++)
			next += (length + tasks[i].jitter_ns + tasks[i].period_ns - 1) / tasks[i].period_ns *
			        tasks[i].time_ns + tasks[i].overrun_ns;
	}
	return next <= min_u64(task->deadline_ns, task->period_ns) ? next : SCHEDULE_NEVER;
}

bool schedule_fixed(struct schedule_task *tasks, unsigned int count)
{
	bool are_met = true;

	for (unsigned int i = 0; i < count && are_met; i++) {
		tasks[i].response_ns = tasks[i].deadline_ns > 0 ? response(tasks, i, count) : 0;
		are_met = tasks[i].response_ns < SCHEDULE_NEVER;
	}
	return are_met;
}

/* Two or more tasks of a kind disturb each other. The shorter deadline goes first, optimal without blocking (Leung and
 * Whitehead 1982). */
unsigned int plan_schedule(const struct plan_problem *problem, const struct tpcset *set, unsigned int tpcs,
                           struct schedule_task tasks[PLAN_TASKS])
{
	unsigned int count = 0, kinds[2] = {0};

	for (uint32_t i = tpcset_next(set, 0); i < PLAN_TASKS; i = tpcset_next(set, i + 1))
		kinds[problem->tasks[i].is_memory]++;
	for (uint32_t i = tpcset_next(set, 0); i < PLAN_TASKS; i = tpcset_next(set, i + 1)) {
		const struct plan_task *task = &problem->tasks[i];
		uint64_t time = (kinds[task->is_memory] > 1 ? task->beside_ns : task->alone_ns)[tpcs];
		unsigned int place = count++;

		for (; place > 0 && tasks[place - 1].deadline_ns > task->deadline_ns; place--)
			tasks[place] = tasks[place - 1];
		tasks[place] = (struct schedule_task){
			.period_ns = task->period_ns,
			.deadline_ns = task->deadline_ns,
			.time_ns = time,
			.launch_ns = task->launch_ns ? min_u64(task->launch_ns[tpcs], time) : time,
			.number = i,
		};
	}
	return count;
}

static bool is_schedulable(const struct plan_problem *problem, const struct tpcset *set, unsigned int tpcs)
{
	struct schedule_task tasks[PLAN_TASKS];
	unsigned int count = plan_schedule(problem, set, tpcs, tasks);

	for (unsigned int i = 0; i < count && count > 1; i++) {
		if (problem->tasks[tasks[i].number].is_alone)
			return false;
	}
	return problem->test ? problem->test(tasks, count) : schedule_fixed(tasks, count);
}

/* More TPCs make no task later: all sizes above a sufficient size are sufficient. */
unsigned int plan_size(const struct plan_problem *problem, const struct tpcset *set, unsigned int low,
                       unsigned int high)
{
	unsigned int found = low <= high && is_schedulable(problem, set, high) ? high : 0;

	while (found > low) {
		unsigned int middle = low + (found - low) / 2;

		if (is_schedulable(problem, set, middle))
			found = middle;
		else
			low = middle + 1;
	}
	return found;
}

/* The programs above all tasks are deferrable servers (Strosnider et al. 1995): a program may use the end of a period
 * and the beginning of the next. */
uint64_t plan_quota(const struct plan_problem *problem, const struct plan_partition *partition, unsigned int programs,
                    uint64_t period_ns, uint64_t launches_ns)
{
	struct schedule_task tasks[1 + PLAN_TASKS];
	unsigned int count = 1 + plan_schedule(problem, &partition->tasks, partition->tpcs, tasks + 1);
	uint64_t run = period_ns / programs / MS * MS;

	for (bool fits = false; run > 0 && !fits; run -= fits ? 0 : MS) {
		tasks[0] = (struct schedule_task){.period_ns = period_ns, .time_ns = programs * run,
		                                  .jitter_ns = period_ns - run, .overrun_ns = launches_ns};
		fits = schedule_fixed(tasks, count);
	}
	return run;
}
