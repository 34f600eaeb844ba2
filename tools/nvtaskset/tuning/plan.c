/* plan: sizes and places for the tasks in a file. */
#include "base/extremes.h"
#include "cli/actions.h"
#include "show/json.h"
#include "tasks.h"

#define QUOTA_PERIOD_NS UINT64_C(10000000)
#define PRIORITY_MOST 90
#define ROUNDS 4 /* each plan learns from the check of the plan before */

#define TEST \
	"response-time analysis for fixed priorities (Audsley et al. 1993), the shorter deadline first, " \
	"with one launch of a lower task"

struct planning {
	bool applies, json;
	double check_seconds; /* 0: no check */
	struct space space;
	struct tasks tasks;
	struct plan_task needs[PROGRAMS_MAX];
	struct task *of[PROGRAMS_MAX];  /* the task of each */
	struct plan_problem problem;
	/* The programs of best effort, and the sum of their longest launches. */
	unsigned int programs;
	uint64_t launches_ns;
	struct plan plan;
	unsigned int fewest; /* TPCs, by the heuristic */
	int searched;        /* TPCs, by a search of all ways; -1: not searched */
	unsigned int rounds;         /* plans applied and checked before */
};

/* --- the problem -------------------------------------------------------------------------------------------------- */

static int pose(struct planning *planning, struct error *error)
{
	struct plan_problem *problem = &planning->problem;
	pid_t list[PROGRAMS_MAX];
	struct pids ours = {.list = list};

	*problem = (struct plan_problem){.tasks = planning->needs};
	planning->programs = 0;
	planning->launches_ns = 0;
	for (struct task *task = planning->tasks.list; task < planning->tasks.list + planning->tasks.count; task++) {
		task->before = task->grant;
		if (task->pid > 0)
			list[ours.count++] = task->pid;
		if (task->is_best_effort) {
			planning->programs++;
			planning->launches_ns = min_u64(planning->launches_ns +
			                                (task->launch_ns > 0 ? task->launch_ns : SCHEDULE_NEVER),
			                                SCHEDULE_NEVER);
		} else {
			task_fill_times(task, &planning->tasks);
			planning->of[problem->count] = task;
			planning->needs[problem->count++] = task->needs;
		}
	}
	if (programs_space_open(&planning->space, &(struct segment_revision){.count = 0}, &ours, error) < 0)
		return -1;
	problem->tpcs = programs_space_count(&planning->space);
	return problem->tpcs > 0 ? 0 : error_set(error, "no TPC of GPU %s is free", planning->space.name);
}

/* The task, the missing time, and possible relief. */
static int explain_failure(const struct planning *planning, struct error *error)
{
	const struct plan *plan = &planning->plan;
	unsigned int tpcs = planning->problem.tpcs;

	if (plan->impossible != PLAN_NONE) {
		const struct task *task = planning->of[plan->impossible];
		double ms = (double)task->longest_ns[tpcs] / 1e6, more = ms - (double)task->needs.deadline_ns / 1e6;

		return task->longest_ns[tpcs] >= SCHEDULE_NEVER
		               ? error_set(error, "task %.60s: its curve has no size of %u TPCs or fewer, which are "
		                                  "free", task->name, tpcs)
		               : error_set(error, "task %.60s: takes %.3f ms with all %u TPCs that are free, %.3f ms "
		                                  "more than its deadline", task->name, ms, tpcs, more);
	}
	struct plan_relief relief = plan_relieve(&planning->problem);
	char what[160] = "no change of one task alone would do";

	if (relief.task != PLAN_NONE)
		snprintf(what, sizeof what, "they would fit if task %.60s had %.3f ms instead of %.3f ms",
		         planning->of[relief.task]->name, (double)relief.deadline_ns / 1e6,
		         (double)planning->of[relief.task]->needs.deadline_ns / 1e6);
	return error_set(error, "the deadlines need %u TPCs, %u more than are free; %s", plan->tpcs, plan->tpcs - tpcs,
	                 what);
}

/* --- places and times --------------------------------------------------------------------------------------------- */

/* A task lends while idle, for at most half of the time that its deadline leaves. Only clients of MPS lend. */
static int place_partition(struct planning *planning, const struct plan_partition *partition, struct error *error)
{
	struct schedule_task tasks[PLAN_TASKS];
	struct segment_partition place;
	unsigned int count = plan_schedule(&planning->problem, &partition->tasks, partition->tpcs, tasks);
	bool is_shared = planning->space.mps != MPS_OFF;

	schedule_fixed(tasks, count);
	if (programs_space_choose(&planning->space, partition->tpcs, &place, error) < 0)
		return -1;
	planning->space.taken = tpcset_or(&planning->space.taken, &place.set);
	for (unsigned int i = 0; i < count; i++) {
		struct task *task = planning->of[tasks[i].number];
		uint64_t us = (task->needs.deadline_ns - tasks[i].response_ns) / 2000;
		bool lends = planning->programs > 0 && !task->needs.is_alone && is_shared && us >= SEGMENT_LEND_MIN_US;

		task->grant = (struct grant){.place = place, .tpcs = partition->tpcs,
		                             .priority = count > 1 ? PRIORITY_MOST - i : 0,
		                             .response_ns = tasks[i].response_ns,
		                             .lend_us = lends ? min_u64(us, SEGMENT_LEND_MAX_US) : 0};
	}
	return 0;
}

/* Without a free TPC: in the partition with room for the largest quotas, one for each task of best effort, if any. */
static void place_by_quota(const struct planning *planning, struct grant *common)
{
	for (unsigned int i = 0; i < planning->plan.count; i++) {
		const struct plan_partition *partition = &planning->plan.partitions[i];
		const struct task *first = planning->of[tpcset_next(&partition->tasks, 0)];
		uint64_t ns = plan_quota(&planning->problem, partition, planning->programs, QUOTA_PERIOD_NS,
		                         planning->launches_ns);

		if (!first->needs.is_alone && ns / 1000 > common->quota_us)
			*common = (struct grant){.place = first->grant.place, .tpcs = partition->tpcs,
			                         .quota_us = ns / 1000};
	}
}

/* All tasks of best effort share the remaining TPCs, or a partition by quotas. */
static int place_best_effort(struct planning *planning, struct error *error)
{
	struct grant common = {.tpcs = planning->problem.tpcs - planning->plan.tpcs,
	                       .borrows = planning->space.mps != MPS_OFF};

	if (common.tpcs == 0)
		place_by_quota(planning, &common);
	else if (programs_space_choose(&planning->space, common.tpcs, &common.place, error) < 0)
		return -1;
	for (struct task *task = planning->tasks.list; task < planning->tasks.list + planning->tasks.count; task++) {
		if (task->is_best_effort && common.tpcs == 0)
			return error_set(error, "task %.60s: no TPC is left for it, and no deadline leaves time for a "
			                        "quota%s", task->name,
			                 task->launch_ns > 0 ? "" : "; its longest launch is not known (launch_ms)");
		task->grant = task->is_best_effort ? common : task->grant;
	}
	return 0;
}

static int make_plan(struct planning *planning, struct error *error)
{
	struct plan other;
	int result = 0;

	if (pose(planning, error) < 0)
		return -1;
	if (!plan_make(&planning->plan, &planning->problem))
		return explain_failure(planning, error);
	plan_heuristic(&other, &planning->problem, true);
	planning->fewest = other.tpcs;
	planning->searched = plan_search(&other, &planning->problem) ? (int)other.tpcs : -1;
	for (unsigned int i = 0; i < planning->plan.count && result == 0; i++)
		result = place_partition(planning, &planning->plan.partitions[i], error);
	return result == 0 && planning->programs > 0 ? place_best_effort(planning, error) : result;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static int others_of(const struct planning *planning, const struct task *task)
{
	int others = -1;

	for (size_t i = 0; i < planning->tasks.count; i++)
		others += tpcset_equal(&task->grant.place.set, &planning->tasks.list[i].grant.place.set);
	return others;
}

static json_t *json_task(const struct planning *planning, const struct task *task)
{
	double predicted = task_predicted_ns(task, &planning->tasks);
	const struct grant *grant = &task->grant;
	const struct jobs_times *seen = &task->seen;
	char list[TPCSET_TEXT], line[PROGRAM_LINE];
	json_t *check = task->is_best_effort || planning->check_seconds <= 0 ? json_null() :
	                json_pack("{s:I, s:I, s:o, s:o, s:o}", "jobs", (json_int_t)seen->count,
	                          "missed", (json_int_t)seen->late, "job_ms", json_ms(seen->median_ns), "off",
	                          json_reading(reading_if(seen->count > 0, seen->median_ns / predicted - 1), false),
	                          "longest_ms", json_ms(seen->longest_ns));

	task_line(task, &planning->space, line);
	return json_pack("{s:s, s:o, s:i, s:s, s:s, s:b, s:b, s:i, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "name",
	                 task->name, "pid", json_reading(reading_if(task->pid > 0, task->pid), true), "tpcs",
	                 (int)grant->tpcs, "tpc_list", tpcset_format_list(&grant->place.set, list), "line", line,
	                 "best_effort", task->is_best_effort, "critical", task->needs.is_alone, "others",
	                 others_of(planning, task), "priority",
	                 json_reading(reading_if(grant->priority > 0, grant->priority), true), "lend_us",
	                 (json_int_t)grant->lend_us, "quota_us", (json_int_t)grant->quota_us, "job_ms",
	                 json_ms(predicted), "longest_ms", json_ms((double)task->longest_ns[grant->tpcs]),
	                 "response_ms", json_ms((double)grant->response_ns), "deadline_ms",
	                 json_ms((double)task->needs.deadline_ns), "check", check);
}

static json_t *document_of(const struct planning *planning)
{
	const struct plan *plan = &planning->plan;
	json_t *array = json_array();

	for (size_t i = 0; i < planning->tasks.count; i++)
		array = json_with(array, json_task(planning, &planning->tasks.list[i]));
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:i, s:i, s:i, s:o, s:s, s:b, s:i, s:o}", "schema",
	                 "nvtaskset-plan/1", "gpu", planning->space.name, "free_tpcs", (int)planning->problem.tpcs,
	                 "used_tpcs", (int)plan->tpcs, "left_tpcs", (int)(planning->problem.tpcs - plan->tpcs), "found",
	                 plan->way, "merges", (int)plan->merges, "forbidden_pairs", (int)plan->forbidden, "fewest_tpcs",
	                 (int)planning->fewest, "searched_tpcs",
	                 json_reading(reading_if(planning->searched >= 0, planning->searched), true), "test", TEST,
	                 "applied", planning->applies, "rounds", (int)planning->rounds, "tasks", array);
}

/* The results of a check stand in the place of command lines. A running program, or a program of --apply, has a pid. */
static void print(const struct planning *planning, const json_t *document)
{
	static const char *const members[] = {"name", "tpcs", "job_ms", "longest_ms", "response_ms", "deadline_ms",
	                                      NULL};
	static const char *const checks[] = {"jobs", "missed", "job_ms", "off", "longest_ms", NULL};
	const struct plan *plan = &planning->plan;
	bool is_checked = planning->check_seconds > 0;
	json_t *task;
	size_t i;

	printf("GPU %s: %u of %u TPCs for %u deadlines, %u left\n\n%-16s      TPCS    JOB ms   LONGEST  RESPONSE  "
	       "DEADLINE  %s\n", planning->space.name,
	       plan->tpcs, planning->problem.tpcs, planning->problem.count, planning->problem.tpcs - plan->tpcs, "TASK",
	       is_checked ? "    JOBS    MISSED    JOB ms       OFF   LONGEST" : "AS");
	json_array_foreach(json_object_get(document, "tasks"), i, task) {
		json_print_row(task, members);
		if (is_checked)
			json_print_row(json_object_get(task, "check"), checks);
		else
			printf("  %s%s", json_string_value(json_object_get(task, "line")),
			       json_is_null(json_object_get(task, "pid")) ? " COMMAND" : "");
		putchar('\n');
	}
	printf("\nFound: %s; %u merges, %u pairs forbidden. The fewest TPCs: %u by the heuristic", plan->way,
	       plan->merges, plan->forbidden, planning->fewest);
	if (planning->searched >= 0)
		printf(", %d by a search of all ways.\n", planning->searched);
	else
		printf("; all ways are searched for %d tasks or fewer.\n", PLAN_EXACT);
	printf("Tested: " TEST ".\n");
	if (is_checked)
		printf("Checked for %g s.\n", planning->check_seconds);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* Applies and checks the plan, as far as wanted, and makes the document. */
static int carry_out(struct planning *planning, json_t **document, struct error *error)
{
	int result = planning->applies ? tasks_apply(&planning->tasks, &planning->space, error) : 0;
	bool is_changed = planning->applies && (result == 0 || planning->rounds > 0);

	if (result == 0 && planning->check_seconds > 0)
		result = tasks_check(&planning->tasks, planning->check_seconds, error);
	if (result < 0)
		return is_changed ? EXIT_CHANGED : -1;
	json_decref(*document);
	*document = document_of(planning);
	if (!planning->json)
		print(planning, *document);
	fflush(stdout);
	return 0;
}

/* The check took place beside the real tasks, and counts more than a neighbour that only disturbs. In a shared
 * partition a task also waits for its partners: the curve has no such waits. True for a late task, or a wrong
 * prediction. */
static bool learn(struct planning *planning)
{
	bool is_wrong = false;

	for (struct task *task = planning->tasks.list; task < planning->tasks.list + planning->tasks.count; task++) {
		if (!task->is_best_effort && others_of(planning, task) == 0 &&
		    curve_learn(&task->curve, task->grant.tpcs, task_predicted_ns(task, &planning->tasks),
		                &task->seen)) {
			task->beside.count = 0;
			is_wrong = true;
		}
	}
	return is_wrong;
}

/* After a check, makes a better plan; if there is none, the last plan stays. */
int action_plan(const struct options *options, struct error *error)
{
	static struct planning planning; /* large */
	bool learns = options->apply && options->check_seconds > 0;
	json_t *document = NULL;

	planning = (struct planning){.applies = options->apply, .json = options->json,
	                             .check_seconds = options->check_seconds,
	                             .space = {.given = &options->gpus, .mps = options->mps.mode}};
	bool is_made = tasks_read(&planning.tasks, options->file, error) == 0 && make_plan(&planning, error) == 0;
	int result = is_made ? carry_out(&planning, &document, error) : -1;

	while (result == 0 && learns && learn(&planning) && ++planning.rounds < ROUNDS) {
		if (!options->json)
			printf("\nPlanned anew, with the times that were measured:\n\n");
		result = make_plan(&planning, error) < 0 ? EXIT_CHANGED : carry_out(&planning, &document, error);
	}
	if (document && options->json && json_write(json_incref(document), false, stdout, error) < 0)
		result = options->apply ? EXIT_CHANGED : -1;
	json_decref(document);
	json_decref(planning.tasks.document);
	return result;
}
