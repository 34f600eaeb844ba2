/* plan: sizes and places for the tasks in a file. */
#include "cli/actions.h"
#include "room.h"
#include "show/json.h"
#include "start.h"
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

#define QUOTA_PERIOD_NS UINT64_C(10000000)
#define PRIORITY_MOST 90
#define LEND_LEAST_NS (2.0 * SEGMENT_LEND_MIN_US * 1000) /* of a deadline's slack */

#define TEST "response-time analysis for fixed priorities (Audsley et al. 1993), the shorter deadline first, with one launch of a lower task"

struct planning {
	const struct options *options;
	struct topology_list list;
	struct room room;
	struct tasks tasks;
	unsigned int tpcs, free;     /* that nobody else has; and that the deadlines leave */
	struct plan_task problem_tasks[TASKS_MAX];
	uint32_t places[TASKS_MAX];  /* of the problem's tasks in the file */
	struct plan_problem problem;
	struct plan plan, best;      /* `best`: of the search */
	const struct plan_rules *rules;
	bool was_searched;
	unsigned int fewest;         /* TPCs, of the heuristic that goes on */
	char label[PCI_ADDRESS_TEXT];
	const char *gpu;
	struct task_check checks[TASKS_MAX];
};

static struct task *task_of(struct planning *planning, uint32_t number)
{
	return &planning->tasks.list[planning->places[number]];
}

/* --- the problem --------------------------------------------------------------------------------------------------------------- */

/* In one partition, jobs run one after the other, so those of a kind do not disturb each other there. The memory is one for the whole
 * GPU: a task that was also measured beside a neighbour takes as long as that where it is not the only one. */
static void pose(struct planning *planning)
{
	struct plan_problem *problem = &planning->problem;

	*problem = (struct plan_problem){.tpcs = planning->tpcs, .tasks = planning->problem_tasks};
	for (uint32_t i = 0; i < planning->tasks.count; i++) {
		struct task *task = &planning->tasks.list[i];
		const uint64_t *times = planning->tasks.count > 1 ? task->beside_ns : task->longest_ns;

		if (task->is_best_effort)
			continue;
		planning->places[problem->count] = i;
		planning->problem_tasks[problem->count++] = (struct plan_task){
			.period_ns = task->period_ns,
			.deadline_ns = task->deadline_ns,
			.is_alone = task->is_critical,
			.alone_ns = times,
			.beside_ns = times,
			.launch_ns = task->launch_ns,
		};
	}
}

static int explain_failure(struct planning *planning, struct error *error)
{
	const struct plan *plan = &planning->plan;
	unsigned int tpcs = planning->tpcs;

	if (plan->impossible != PLAN_NONE) {
		const struct task *task = task_of(planning, plan->impossible);
		uint64_t ns = planning->problem_tasks[plan->impossible].alone_ns[tpcs];

		return ns >= SCHEDULE_NEVER ? error_set(error, "task %.60s: its curve has no size of %u TPCs or fewer, which are free", task->name, tpcs)
		                            : error_set(error, "task %.60s: takes %.3f ms with all %u TPCs that are free, %.3f ms more than its deadline",
		                                        task->name, (double)ns / 1e6, tpcs, (double)(ns - task->deadline_ns) / 1e6);
	}
	struct plan_relief relief = plan_relieve(&planning->problem);
	const struct task *task = relief.task != PLAN_NONE ? task_of(planning, relief.task) : NULL;

	if (!task)
		return error_set(error, "the deadlines need %u TPCs, %u more than are free; no change of one task alone would do", plan->tpcs, plan->tpcs - tpcs);
	return relief.is_without
	               ? error_set(error, "the deadlines need %u TPCs, %u more than are free; without task %.60s they would fit", plan->tpcs, plan->tpcs - tpcs,
	                           task->name)
	               : error_set(error, "the deadlines need %u TPCs, %u more than are free; they would fit if task %.60s had %.3f ms instead of %.3f ms",
	                           plan->tpcs, plan->tpcs - tpcs, task->name, (double)relief.deadline_ns / 1e6, (double)task->deadline_ns / 1e6);
}

/* --- places and times ---------------------------------------------------------------------------------------------------------- */

static int place(struct planning *planning, unsigned int tpcs, struct segment_partition *found, struct error *error)
{
	struct segment_revision wanted;
	int result = room_choose(&planning->room, tpcs, &wanted, error);

	if (result == 0) {
		struct segment_partition *taken = &planning->room.taken.partitions[0];

		*found = wanted.partitions[0];
		planning->room.taken.count = 1;
		taken->pci = found->pci;
		taken->set = tpcset_or(&taken->set, &found->set);
	}
	return result;
}

static bool has_best_effort(const struct planning *planning)
{
	return planning->problem.count < planning->tasks.count;
}

/* A task lends while it is idle, for at most half of what its deadline leaves. Only clients of MPS do. */
static uint64_t lend_us(const struct planning *planning, const struct task *task)
{
	uint64_t slack = task->deadline_ns - task->response_ns;
	bool lends = has_best_effort(planning) && !task->is_critical && planning->options->mps.mode != MPS_OFF && (double)slack >= LEND_LEAST_NS;
	uint64_t us = slack / 2000;

	return !lends ? 0 : us < SEGMENT_LEND_MAX_US ? us : SEGMENT_LEND_MAX_US;
}

static int place_partition(struct planning *planning, const struct plan_partition *partition, struct error *error)
{
	struct schedule_task tasks[PLAN_TASKS];
	uint32_t order[PLAN_TASKS];
	uint64_t responses[PLAN_TASKS];
	struct segment_partition found;
	unsigned int count = plan_schedule(&planning->problem, &partition->tasks, partition->tpcs, tasks, order);

	schedule_fixed(tasks, count, NULL, responses);
	if (place(planning, partition->tpcs, &found, error) < 0)
		return -1;
	for (unsigned int i = 0; i < count; i++) {
		struct task *task = task_of(planning, order[i]);

		task->place = found;
		task->tpcs = partition->tpcs;
		task->others = count - 1;
		task->response_ns = responses[i];
		task->priority = count > 1 ? PRIORITY_MOST - i : 0;
		task->lend_us = lend_us(planning, task);
	}
	return 0;
}

/* Where no TPC is left, a quota in the partition that can give most. */
static void place_by_quota(struct planning *planning, struct task *task)
{
	uint64_t launch = task->launch_ms > 0 ? (uint64_t)(task->launch_ms * 1e6) : SCHEDULE_NEVER;

	for (unsigned int i = 0; i < planning->plan.count; i++) {
		const struct plan_partition *partition = &planning->plan.partitions[i];
		struct task *other = task_of(planning, plan_set_next(&partition->tasks, 0));
		uint64_t quota = other->is_critical ? 0 : plan_quota(&planning->problem, partition, QUOTA_PERIOD_NS, launch) / 1000;

		if (quota > task->quota_us) {
			task->quota_us = quota;
			task->place = other->place;
			task->tpcs = partition->tpcs;
			task->others = other->others + 1;
			task->lend_us = 0;
		}
	}
}

static int place_best_effort(struct planning *planning, struct error *error)
{
	struct segment_partition rest;
	bool is_full = planning->free == 0, shares = planning->options->mps.mode != MPS_OFF;
	int result = is_full || !has_best_effort(planning) ? 0 : place(planning, planning->free, &rest, error);

	for (size_t i = 0; i < planning->tasks.count && result == 0; i++) {
		struct task *task = &planning->tasks.list[i];

		if (!task->is_best_effort)
			continue;
		if (is_full) {
			place_by_quota(planning, task);
			is_full = true;
		} else {
			task->place = rest;
			task->tpcs = planning->free;
			task->others = (unsigned int)planning->tasks.count - planning->problem.count - 1;
			task->borrows = shares;
		}
		if (task->tpcs == 0)
			result = error_set(error, "task %.60s: no TPC is left for it, and no deadline leaves time for a quota%s", task->name,
			                   task->launch_ms > 0 ? "" : "; its longest launch is not known (launch_ms)");
	}
	return result;
}

static int make(struct planning *planning, struct error *error)
{
	struct plan goes_on;
	int result = 0;

	planning->tpcs = room_count(&planning->room, error);
	if (planning->tpcs == 0)
		return -1;
	pose(planning);
	if (!plan_make(&planning->plan, &planning->problem, &planning->rules))
		return explain_failure(planning, error);
	planning->fewest = UINT32_MAX;
	for (int way = 0; way < 4; way++) {
		plan_allocate(&goes_on, &planning->problem, (struct plan_rules){way < 2 ? PLAN_SIZE : PLAN_WORK, way % 2, true});
		planning->fewest = goes_on.tpcs < planning->fewest ? goes_on.tpcs : planning->fewest;
	}
	planning->was_searched = plan_search(&planning->best, &planning->problem);
	planning->free = planning->tpcs - planning->plan.tpcs;
	for (unsigned int i = 0; i < planning->plan.count && result == 0; i++)
		result = place_partition(planning, &planning->plan.partitions[i], error);
	return result == 0 ? place_best_effort(planning, error) : -1;
}

/* --- text ------------------------------------------------------------------------------------------------------------------------ */

static void print_command(const struct planning *planning, const struct task *task)
{
	char text[TPCSET_TEXT + 256], *arguments[TASK_ARGUMENTS];

	task_arguments(task, start_mps(planning->options), planning->gpu, text, arguments);
	for (int i = 0; arguments[i]; i++) {
		bool is_plain = arguments[i][0] != '\0' && strspn(arguments[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,%@") ==
		                                               strlen(arguments[i]);

		fputs(i > 0 ? " " : "  ", stdout);
		for (const char *at = arguments[i]; !is_plain && (at == arguments[i] || *at); at++)
			printf(at == arguments[i] ? *at == '\'' ? "''\\''" : "'%c" : *at == '\'' ? "'\\''" : "%c", *at);
		fputs(is_plain ? arguments[i] : "'", stdout);
	}
	putchar('\n');
}

static void print_tasks(const struct planning *planning)
{
	char list[TPCSET_TEXT];

	printf("\n%-16s %4s %9s %9s %9s %9s  %s\n", "TASK", "TPCS", "JOB ms", "LONGEST", "RESPONSE", "DEADLINE", "WHERE");
	for (size_t i = 0; i < planning->tasks.count; i++) {
		const struct task *task = &planning->tasks.list[i];

		printf("%-16.16s %4u", task->name, task->tpcs);
		if (task->is_best_effort)
			printf(" %9s %9s %9s %9s", "-", "-", "-", "-");
		else
			printf(" %9.3f %9.3f %9.3f %9.3f", (double)task->typical_ns[task->tpcs] / 1e6, (double)task->longest_ns[task->tpcs] / 1e6,
			       (double)task->response_ns / 1e6, (double)task->deadline_ns / 1e6);
		printf("  %s%s", tpcset_format_list(&task->place.set, list), task->is_critical ? ", critical" : "");
		if (task->others > 0)
			printf(", shared with %u", task->others);
		putchar('\n');
	}
}

static const char *way_of(const struct planning *planning)
{
	static const char *const ways[2][2] = {{"by size", "by size, pairs tested first"}, {"by work", "by work, pairs tested first"}};

	return planning->rules ? ways[planning->rules->order][planning->rules->tests_pairs] : "all ways searched";
}

static void print(const struct planning *planning)
{
	printf("GPU %s: %u of %u TPCs for %u deadlines, %u left\n", planning->gpu, planning->plan.tpcs, planning->tpcs, planning->problem.count, planning->free);
	print_tasks(planning);
	printf("\nFound: %s; %u merges, %u pairs forbidden. The fewest TPCs: %u by the heuristic", way_of(planning), planning->plan.merges,
	       planning->plan.forbidden, planning->fewest);
	if (planning->was_searched)
		printf(", %u by a search of all ways.\n", planning->best.tpcs);
	else
		printf("; all ways are searched for %d tasks or fewer.\n", PLAN_EXACT);
	printf("Tested: " TEST ".\n");
	if (!planning->options->apply) {
		printf("\nAs commands (--apply does it):\n");
		for (size_t i = 0; i < planning->tasks.count; i++)
			print_command(planning, &planning->tasks.list[i]);
	}
}

static void print_checks(const struct planning *planning)
{
	printf("\nChecked for %g s:\n%-16s %7s %7s %9s %9s %9s %9s\n", planning->options->check_seconds, "TASK", "JOBS", "MISSED", "JOB ms", "PREDICTED", "OFF",
	       "LONGEST");
	for (uint32_t i = 0; i < planning->problem.count; i++) {
		const struct task *task = &planning->tasks.list[planning->places[i]];
		const struct task_check *check = &planning->checks[planning->places[i]];
		double predicted = (double)task->typical_ns[task->tpcs];

		printf("%-16.16s %7zu %7zu %9.3f %9.3f %8.1f%% %9.3f\n", task->name, check->jobs, check->missed, check->median_ns / 1e6, predicted / 1e6,
		       check->jobs > 0 ? (check->median_ns / predicted - 1) * 100 : 0, check->longest_ns / 1e6);
	}
}

/* --- JSON ------------------------------------------------------------------------------------------------------------------------ */

static json_t *ms_or_null(bool is_known, double ns)
{
	return is_known ? json_real(ns / 1e6) : json_null();
}

static json_t *json_task(const struct planning *planning, size_t place)
{
	const struct task *task = &planning->tasks.list[place];
	const struct task_check *check = &planning->checks[place];
	bool has_deadline = !task->is_best_effort, was_checked = planning->options->check_seconds > 0 && has_deadline;
	char list[TPCSET_TEXT];
	json_t *object = json_pack("{s:s, s:o, s:i, s:s, s:b, s:b, s:i, s:o, s:I, s:I}", "name", task->name, "pid",
	                           task->pid > 0 ? json_integer(task->pid) : json_null(), "tpcs", (int)task->tpcs, "tpc_list",
	                           tpcset_format_list(&task->place.set, list), "best_effort", task->is_best_effort, "critical", task->is_critical, "others",
	                           (int)task->others, "priority", task->priority > 0 ? json_integer(task->priority) : json_null(), "lend_us",
	                           (json_int_t)task->lend_us, "quota_us", (json_int_t)task->quota_us);

	object = json_joined(object, json_pack("{s:o, s:o, s:o, s:o}", "job_ms", ms_or_null(has_deadline, (double)task->typical_ns[task->tpcs]),
	                                       "longest_ms", ms_or_null(has_deadline, (double)task->longest_ns[task->tpcs]), "response_ms",
	                                       ms_or_null(has_deadline, (double)task->response_ns), "deadline_ms",
	                                       ms_or_null(has_deadline, (double)task->deadline_ns)));
	return json_joined(object, json_pack("{s:o}", "check", !was_checked ? json_null() :
	                                     json_pack("{s:I, s:I, s:o, s:o}", "jobs", (json_int_t)check->jobs, "missed", (json_int_t)check->missed, "job_ms",
	                                               ms_or_null(check->jobs > 0, check->median_ns), "longest_ms",
	                                               ms_or_null(check->jobs > 0, check->longest_ns))));
}

static json_t *document_of(const struct planning *planning)
{
	json_t *array = json_array();

	for (size_t i = 0; i < planning->tasks.count; i++)
		array = json_with(array, json_task(planning, i));
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:i, s:i, s:i, s:o, s:s, s:b, s:o}", "schema", "nvtaskset-plan/1", "gpu", planning->gpu, "free_tpcs",
	                 (int)planning->tpcs, "used_tpcs", (int)planning->plan.tpcs, "left_tpcs", (int)planning->free, "found", way_of(planning), "merges",
	                 (int)planning->plan.merges, "forbidden_pairs", (int)planning->plan.forbidden, "fewest_tpcs", (int)planning->fewest, "searched_tpcs",
	                 planning->was_searched ? json_integer(planning->best.tpcs) : json_null(), "test", TEST, "applied", planning->options->apply, "tasks",
	                 array);
}

/* --- all ------------------------------------------------------------------------------------------------------------------------- */

static int prepare(struct planning *planning, struct error *error)
{
	const struct options *options = planning->options;
	struct room *room = &planning->room;
	int result = tasks_read(&planning->tasks, options->file, error);

	room->options = options;
	room->list = &planning->list;
	if (result == 0)
		result = topology_load(&planning->list, error);
	if (result == 0)
		result = gpus_choose(&room->chosen, &planning->list, options->gpus, options->gpu_count, error);
	if (result == 0 && room->chosen.count > 1)
		result = error_set(error, "plan: one GPU at a time (-G)");
	for (size_t i = 0; i < planning->tasks.count && result == 0; i++) {
		const struct task *task = &planning->tasks.list[i];

		if (task->pid > 0)
			result = pids_add(&room->pids, task->pid, error);
		else if (options->check_seconds > 0 && !options->apply && !task->is_best_effort)
			result = error_set(error, "task %.60s: does not run; --apply starts it", task->name);
	}
	return result;
}

static int act(struct planning *planning, struct error *error)
{
	const struct options *options = planning->options;
	struct segment_revision whole = {.count = 1};
	int result = prepare(planning, error);

	if (result == 0) {
		const struct topology *gpu = planning->room.chosen.choices[0].gpu;

		planning->gpu = gpus_label(gpu->pci, &planning->list, planning->label);
		whole.partitions[0] = (struct segment_partition){.pci = gpu->pci, .set = topology_all(gpu)};
		result = make(planning, error);
	}
	if (result == 0 && options->apply)
		result = tasks_apply(&planning->tasks, &whole, start_mps(options), planning->gpu, error);
	if (result == 0 && !options->json)
		print(planning);
	fflush(stdout);
	if (result == 0 && options->check_seconds > 0) {
		result = tasks_check(&planning->tasks, options->check_seconds, planning->checks, error);
		if (result < 0 && options->apply)
			result = EXIT_CHANGED;
	}
	if (result == 0 && options->check_seconds > 0 && !options->json)
		print_checks(planning);
	return result == 0 && options->json ? json_write(document_of(planning), false, stdout, error) : result;
}

int action_plan(const struct options *options, struct error *error)
{
	static struct planning planning; /* large */

	planning = (struct planning){.options = options};
	int result = act(&planning, error);

	json_decref(planning.tasks.document);
	free(planning.room.pids.list);
	return result;
}
