/* Whether tasks meet their deadlines in one partition, and how many TPCs it needs for that. */
#include "plan.h"

#include "base/extremes.h"

#define MS UINT64_C(1000000)

/* --- the test ------------------------------------------------------------------------------------------------------------- */

static uint64_t times(uint64_t number, uint64_t ns)
{
	return ns == 0 || number <= SCHEDULE_NEVER / ns ? number * ns : SCHEDULE_NEVER;
}

static uint64_t rounded_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

static uint64_t interference(const struct schedule_task *tasks, unsigned int count, const struct schedule_server *server, uint64_t length)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < count; i++)
		sum += times(rounded_up(length, tasks[i].period_ns), tasks[i].time_ns);
	/* It may use the end of one period and the beginning of the next. */
	if (server->run_ns > 0)
		sum += times(rounded_up(length + server->period_ns - min_u64(server->period_ns, server->run_ns), server->period_ns),
		             server->run_ns) + server->launch_ns;
	return sum;
}

/* Of a task with `above` others above it. */
static uint64_t response(const struct schedule_task *tasks, unsigned int above, unsigned int count, const struct schedule_server *server)
{
	const struct schedule_task *task = &tasks[above];
	uint64_t blocking = 0, own, length = 0, next;

	for (unsigned int i = above + 1; i < count; i++)
		blocking = max_u64(blocking, tasks[i].launch_ns);
	own = task->time_ns + blocking;
	next = own;
	while (next > length && next <= task->deadline_ns) {
		length = next;
		next = own + interference(tasks, above, server, length);
	}
	return next <= min_u64(task->deadline_ns, task->period_ns) ? next : SCHEDULE_NEVER;
}

bool schedule_fixed(const struct schedule_task *tasks, unsigned int count, const struct schedule_server *server,
                    uint64_t *responses_ns)
{
	static const struct schedule_server none;
	bool are_met = true;

	for (unsigned int i = 0; i < count && (are_met || responses_ns); i++) {
		uint64_t ns = response(tasks, i, count, server ? server : &none);

		are_met = are_met && ns < SCHEDULE_NEVER;
		if (responses_ns)
			responses_ns[i] = ns;
	}
	return are_met;
}

/* --- the partition -------------------------------------------------------------------------------------------------------- */

/* Two or more tasks of a kind disturb each other. The shorter deadline goes first, which is optimal without blocking (Leung and
 * Whitehead 1982). */
unsigned int plan_schedule(const struct plan_problem *problem, const struct tpcset *set, unsigned int tpcs,
                           struct schedule_task tasks[PLAN_TASKS], uint32_t places[PLAN_TASKS])
{
	unsigned int count = 0, kinds[2] = {0};

	for (uint32_t i = tpcset_next(set, 0); i < PLAN_TASKS; i = tpcset_next(set, i + 1))
		kinds[problem->tasks[i].is_memory]++;
	for (uint32_t i = tpcset_next(set, 0); i < PLAN_TASKS; i = tpcset_next(set, i + 1)) {
		const struct plan_task *task = &problem->tasks[i];
		uint64_t time = (kinds[task->is_memory] > 1 ? task->beside_ns : task->alone_ns)[tpcs];
		unsigned int place = count++;

		for (; place > 0 && tasks[place - 1].deadline_ns > task->deadline_ns; place--) {
			tasks[place] = tasks[place - 1];
			places[place] = places[place - 1];
		}
		tasks[place] = (struct schedule_task){
			.period_ns = task->period_ns,
			.deadline_ns = task->deadline_ns,
			.time_ns = time,
			.launch_ns = task->launch_ns ? min_u64(task->launch_ns[tpcs], time) : time,
		};
		places[place] = i;
	}
	return count;
}

static bool is_schedulable(const struct plan_problem *problem, const struct tpcset *set, unsigned int tpcs)
{
	struct schedule_task tasks[PLAN_TASKS];
	uint32_t places[PLAN_TASKS];
	unsigned int count = plan_schedule(problem, set, tpcs, tasks, places);

	return problem->test ? problem->test(tasks, count) : schedule_fixed(tasks, count, NULL, NULL);
}

/* More TPCs make no task later, so the sizes that do are all above those that do not. */
unsigned int plan_size(const struct plan_problem *problem, const struct tpcset *set, unsigned int low, unsigned int high)
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

uint64_t plan_quota(const struct plan_problem *problem, const struct plan_partition *partition, uint64_t period_ns, uint64_t launch_ns)
{
	struct schedule_task tasks[PLAN_TASKS];
	uint32_t places[PLAN_TASKS];
	unsigned int count = plan_schedule(problem, &partition->tasks, partition->tpcs, tasks, places);
	struct schedule_server server = {.period_ns = period_ns, .launch_ns = launch_ns};

	for (server.run_ns = period_ns / MS * MS; server.run_ns > 0 && !schedule_fixed(tasks, count, &server, NULL);)
		server.run_ns -= MS;
	return server.run_ns;
}
