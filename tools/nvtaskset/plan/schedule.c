#include "schedule.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

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
		sum += times(rounded_up(length + server->period_ns - least(server->period_ns, server->run_ns), server->period_ns),
		             server->run_ns) + server->launch_ns;
	return sum;
}

/* Of a task with `above` others above it. */
static uint64_t response(const struct schedule_task *tasks, unsigned int above, unsigned int count, const struct schedule_server *server)
{
	const struct schedule_task *task = &tasks[above];
	uint64_t blocking = 0, own, length = 0, next;

	for (unsigned int i = above + 1; i < count; i++)
		blocking = most(blocking, tasks[i].launch_ns);
	own = task->time_ns + blocking;
	next = own;
	while (next > length && next <= task->deadline_ns) {
		length = next;
		next = own + interference(tasks, above, server, length);
	}
	return next <= least(task->deadline_ns, task->period_ns) ? next : SCHEDULE_NEVER;
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

int schedule_compare(const struct schedule_task *a, const struct schedule_task *b)
{
	return (a->deadline_ns > b->deadline_ns) - (a->deadline_ns < b->deadline_ns);
}
