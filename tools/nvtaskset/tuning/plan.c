/* plan: sizes and places for the tasks in a file. */
#include "cli/actions.h"
#include "curve.h"
#include "room.h"
#include "show/json.h"
#include "start.h"
#include "tasks.h"

#include <stdlib.h>
#include <string.h>

#define QUOTA_PERIOD_NS UINT64_C(10000000)
#define PRIORITY_MOST 90
#define ROUNDS 4 /* plans are made with what was seen of the one before */

#define TEST "response-time analysis for fixed priorities (Audsley et al. 1993), the shorter deadline first, with one launch of a lower task"

struct planning {
	const struct options *options;
	struct room room;
	struct tasks tasks;
	unsigned int tpcs, free;     /* that nobody else has; and that the deadlines leave */
	struct plan_task needs[TASKS_MAX];
	struct task *of[TASKS_MAX];  /* whose they are */
	struct plan_problem problem;
	struct plan plan, best;      /* `best`: of the search */
	bool was_searched;
	unsigned int fewest;         /* TPCs, of the heuristic that goes on */
	unsigned int rounds;         /* so many plans were applied and checked before this one */
	struct error why_ended;      /* no other one was made although this one is not right; "": it is, or was not checked */
};

/* --- the problem --------------------------------------------------------------------------------------------------------------- */

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* A job of the task where it is; 0: it has no deadline. */
static double predicted_ns(const struct task *task)
{
	return curve_ns(&task->curve, task->tpcs, CURVE_JOB);
}

static void pose(struct planning *planning)
{
	struct plan_problem *problem = &planning->problem;

	*problem = (struct plan_problem){.tpcs = planning->tpcs, .tasks = planning->needs};
	for (struct task *task = planning->tasks.list; task < planning->tasks.list + planning->tasks.count; task++) {
		if (!task->is_best_effort) {
			task_fill_times(task, &planning->tasks);
			planning->of[problem->count] = task;
			planning->needs[problem->count++] = task->needs;
		}
	}
}

/* Which task, by how much, and what would have to give. */
static int explain_failure(const struct planning *planning, struct error *error)
{
	const struct plan *plan = &planning->plan;
	unsigned int tpcs = planning->tpcs;
	char change[160] = "no change of one task alone would do";

	if (plan->impossible != PLAN_NONE) {
		const struct task *task = planning->of[plan->impossible];
		uint64_t ns = planning->needs[plan->impossible].alone_ns[tpcs];

		return ns >= SCHEDULE_NEVER ? error_set(error, "task %.60s: its curve has no size of %u TPCs or fewer, which are free", task->name, tpcs)
		                            : error_set(error, "task %.60s: takes %.3f ms with all %u TPCs that are free, %.3f ms more than its deadline",
		                                        task->name, ms(ns), tpcs, ms(ns - task->needs.deadline_ns));
	}
	struct plan_relief relief = plan_relieve(&planning->problem);
	const struct task *task = relief.task != PLAN_NONE ? planning->of[relief.task] : NULL;

	if (task && relief.is_without)
		snprintf(change, sizeof change, "without task %.60s they would fit", task->name);
	else if (task)
		snprintf(change, sizeof change, "they would fit if task %.60s had %.3f ms instead of %.3f ms", task->name, ms(relief.deadline_ns),
		         ms(task->needs.deadline_ns));
	return error_set(error, "the deadlines need %u TPCs, %u more than are free; %s", plan->tpcs, plan->tpcs - tpcs, change);
}

/* --- places and times ---------------------------------------------------------------------------------------------------------- */

/* Takes so many TPCs that nobody has, and no other task. */
static int take_place(struct planning *planning, unsigned int tpcs, struct segment_partition *place, struct error *error)
{
	struct segment_revision wanted, *taken = &planning->room.taken;

	if (room_choose(&planning->room, tpcs, &wanted, error) < 0)
		return -1;
	*place = wanted.partitions[0];
	taken->count = 1;
	taken->partitions[0].pci = place->pci;
	taken->partitions[0].set = tpcset_or(&taken->partitions[0].set, &place->set);
	return 0;
}

static bool has_best_effort(const struct planning *planning)
{
	return planning->problem.count < planning->tasks.count;
}

/* A task lends while it is idle, for at most half of what its deadline leaves. Only clients of MPS do. */
static uint64_t lend_us(const struct planning *planning, const struct task *task)
{
	uint64_t us = (task->needs.deadline_ns - task->response_ns) / 2000;
	bool lends = has_best_effort(planning) && !task->needs.is_alone && planning->options->mps.mode != MPS_OFF && us >= SEGMENT_LEND_MIN_US;

	return !lends ? 0 : us < SEGMENT_LEND_MAX_US ? us : SEGMENT_LEND_MAX_US;
}

static int place_partition(struct planning *planning, const struct plan_partition *partition, struct error *error)
{
	struct schedule_task tasks[PLAN_TASKS];
	uint32_t order[PLAN_TASKS];
	uint64_t responses[PLAN_TASKS];
	struct segment_partition place;
	unsigned int count = plan_schedule(&planning->problem, &partition->tasks, partition->tpcs, tasks, order);

	schedule_fixed(tasks, count, NULL, responses);
	if (take_place(planning, partition->tpcs, &place, error) < 0)
		return -1;
	for (unsigned int i = 0; i < count; i++) {
		struct task *task = planning->of[order[i]];

		task->place = place;
		task->tpcs = partition->tpcs;
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
		const struct task *other = planning->of[tpcset_next(&partition->tasks, 0)];
		uint64_t quota = other->needs.is_alone ? 0 : plan_quota(&planning->problem, partition, QUOTA_PERIOD_NS, launch) / 1000;

		if (quota > task->quota_us) {
			task->quota_us = quota;
			task->place = other->place;
			task->tpcs = partition->tpcs;
		}
	}
}

static int place_best_effort(struct planning *planning, struct error *error)
{
	struct segment_partition rest;
	int result = planning->free > 0 && has_best_effort(planning) ? take_place(planning, planning->free, &rest, error) : 0;

	for (size_t i = 0; i < planning->tasks.count && result == 0; i++) {
		struct task *task = &planning->tasks.list[i];

		if (!task->is_best_effort)
			continue;
		task->tpcs = 0;
		task->quota_us = 0;
		task->borrows = planning->free > 0 && planning->options->mps.mode != MPS_OFF;
		if (planning->free == 0) {
			place_by_quota(planning, task);
		} else {
			task->place = rest;
			task->tpcs = planning->free;
		}
		if (task->tpcs == 0)
			result = error_set(error, "task %.60s: no TPC is left for it, and no deadline leaves time for a quota%s", task->name,
			                   task->launch_ms > 0 ? "" : "; its longest launch is not known (launch_ms)");
	}
	return result;
}

static void count_others(struct tasks *tasks)
{
	for (size_t i = 0; i < tasks->count; i++) {
		struct task *task = &tasks->list[i];

		task->others = 0;
		for (size_t j = 0; j < tasks->count; j++)
			task->others += j != i && tpcset_equal(&task->place.set, &tasks->list[j].place.set);
	}
}

static int make(struct planning *planning, struct error *error)
{
	struct plan goes_on;
	int result = 0;

	planning->room.taken = (struct segment_revision){.count = 0};
	planning->tpcs = room_count(&planning->room, error);
	if (planning->tpcs == 0)
		return -1;
	pose(planning);
	if (!plan_make(&planning->plan, &planning->problem))
		return explain_failure(planning, error);
	planning->fewest = UINT32_MAX;
	for (unsigned int way = 0; way < PLAN_WAYS; way++) {
		plan_allocate(&goes_on, &planning->problem, plan_way(way, true));
		planning->fewest = goes_on.tpcs < planning->fewest ? goes_on.tpcs : planning->fewest;
	}
	planning->was_searched = plan_search(&planning->best, &planning->problem);
	planning->free = planning->tpcs - planning->plan.tpcs;
	for (unsigned int i = 0; i < planning->plan.count && result == 0; i++)
		result = place_partition(planning, &planning->plan.partitions[i], error);
	if (result == 0)
		result = place_best_effort(planning, error);
	count_others(&planning->tasks);
	return result;
}

/* --- text ------------------------------------------------------------------------------------------------------------------------ */

/* As a shell reads it. */
static void print_word(const char *word)
{
	bool is_plain = *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,%@")] == '\0';

	fputs(is_plain ? " " : " '", stdout);
	for (; *word; word++)
		printf(*word == '\'' ? "'\\''" : "%c", *word);
	if (!is_plain)
		putchar('\'');
}

static void print_command(const struct planning *planning, const struct task *task)
{
	char text[TASK_TEXT], *words[TASK_OWN_WORDS];

	task_words(task, &planning->room, text, words);
	putchar(' ');
	for (int i = 0; words[i]; i++)
		print_word(words[i]);
	for (int i = 0; task->command[i]; i++)
		print_word(task->command[i]);
	putchar('\n');
}

static void print_tasks(const struct planning *planning)
{
	char list[TPCSET_TEXT];

	printf("\n%-16s %4s %9s %9s %9s %9s  %s\n", "TASK", "TPCS", "JOB ms", "LONGEST", "RESPONSE", "DEADLINE", "WHERE");
	for (size_t i = 0; i < planning->tasks.count; i++) {
		const struct task *task = &planning->tasks.list[i];

		printf("%-16.16s %4u", task->name, task->tpcs);
		print_ms(predicted_ns(task));
		print_ms((double)task->longest_ns[task->tpcs]);
		print_ms((double)task->response_ns);
		print_ms((double)task->needs.deadline_ns);
		printf("  %s%s", tpcset_format_list(&task->place.set, list), task->needs.is_alone ? ", critical" : "");
		if (task->others > 0)
			printf(", shared with %u", task->others);
		putchar('\n');
	}
}

static void print(const struct planning *planning)
{
	const struct plan *plan = &planning->plan;

	printf("GPU %s: %u of %u TPCs for %u deadlines, %u left\n", planning->room.gpu, plan->tpcs, planning->tpcs, planning->problem.count,
	       planning->free);
	print_tasks(planning);
	printf("\nFound: %s; %u merges, %u pairs forbidden. The fewest TPCs: %u by the heuristic", plan->way, plan->merges, plan->forbidden,
	       planning->fewest);
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
	for (unsigned int i = 0; i < planning->problem.count; i++) {
		const struct task *task = planning->of[i];
		const struct jobs_times *seen = &task->seen;

		printf("%-16.16s %7zu %7zu %9.3f %9.3f %8.1f%% %9.3f\n", task->name, seen->count, seen->late, seen->median_ns / 1e6, predicted_ns(task) / 1e6,
		       seen->count > 0 ? (seen->median_ns / predicted_ns(task) - 1) * 100 : 0, seen->longest_ns / 1e6);
	}
}

/* --- JSON ------------------------------------------------------------------------------------------------------------------------ */

static json_t *json_task(const struct planning *planning, const struct task *task)
{
	const struct jobs_times *seen = &task->seen;
	char list[TPCSET_TEXT];
	json_t *check = task->is_best_effort || planning->options->check_seconds <= 0 ? json_null() :
	                json_pack("{s:I, s:I, s:o, s:o}", "jobs", (json_int_t)seen->count, "missed", (json_int_t)seen->late, "job_ms",
	                          json_ms(seen->median_ns), "longest_ms", json_ms(seen->longest_ns));

	return json_pack("{s:s, s:o, s:i, s:s, s:b, s:b, s:i, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "name", task->name, "pid",
	                 json_reading(reading_if(task->pid > 0, task->pid), true), "tpcs", (int)task->tpcs, "tpc_list",
	                 tpcset_format_list(&task->place.set, list), "best_effort", task->is_best_effort, "critical", task->needs.is_alone, "others",
	                 (int)task->others, "priority", json_reading(reading_if(task->priority > 0, task->priority), true), "lend_us",
	                 (json_int_t)task->lend_us, "quota_us", (json_int_t)task->quota_us, "job_ms", json_ms(predicted_ns(task)), "longest_ms",
	                 json_ms((double)task->longest_ns[task->tpcs]), "response_ms", json_ms((double)task->response_ns), "deadline_ms",
	                 json_ms((double)task->needs.deadline_ns), "check", check);
}

static json_t *document_of(const struct planning *planning)
{
	const struct plan *plan = &planning->plan;
	const char *why = planning->why_ended.reason;
	json_t *array = json_array();

	for (size_t i = 0; i < planning->tasks.count; i++)
		array = json_with(array, json_task(planning, &planning->tasks.list[i]));
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:s, s:i, s:i, s:i, s:o, s:s, s:b, s:i, s:s?, s:o}", "schema", "nvtaskset-plan/1", "gpu", planning->room.gpu,
	                 "free_tpcs", (int)planning->tpcs, "used_tpcs", (int)plan->tpcs, "left_tpcs", (int)planning->free, "found", plan->way, "merges",
	                 (int)plan->merges, "forbidden_pairs", (int)plan->forbidden, "fewest_tpcs", (int)planning->fewest, "searched_tpcs",
	                 json_reading(reading_if(planning->was_searched, planning->best.tpcs), true), "test", TEST, "applied", planning->options->apply,
	                 "rounds", (int)planning->rounds, "why_ended", why[0] ? why : NULL, "tasks", array);
}

/* --- all ------------------------------------------------------------------------------------------------------------------------- */

/* A plan is for one GPU: nothing that works on others only is part of it. */
static int check_gpu(const struct room *room, const struct task *task, struct error *error)
{
	char gpu[PCI_ADDRESS_TEXT];
	struct editor editor;
	struct counts counts = {.count = 0};

	if (editor_open(&editor, task->pid, NULL) != SEGMENT_FOUND)
		return 0;
	bool is_there = counts_read(&editor.segment, task->pid, &counts, NULL) < 0 || counts.count == 0;

	editor_close(&editor);
	for (unsigned int i = 0; i < counts.count && !is_there; i++)
		is_there = pci_address_equal(counts.gpus[i].pci, room->whole.partitions[0].pci);
	return is_there ? 0 : error_set(error, "task %.60s: pid %d works on GPU %s, and a plan is for one GPU: this one is for GPU %s (-G)", task->name,
	                                (int)task->pid, gpus_label(counts.gpus[0].pci, &room->list, gpu), room->gpu);
}

static int prepare(struct planning *planning, struct error *error)
{
	static const struct segment_revision none;
	const struct options *options = planning->options;
	struct room *room = &planning->room;
	int result = tasks_read(&planning->tasks, options->file, error);

	if (result == 0)
		result = room_open(room, options, &none, error);
	for (size_t i = 0; i < planning->tasks.count && result == 0; i++) {
		const struct task *task = &planning->tasks.list[i];

		if (task->pid > 0)
			result = check_gpu(room, task, error) < 0 ? -1 : pids_add(&room->pids, task->pid, error);
		else if (options->check_seconds > 0 && !options->apply && !task->is_best_effort)
			result = error_set(error, "task %.60s: does not run; --apply starts it", task->name);
	}
	return result;
}

/* What was seen took place beside the other tasks, so it counts more than a neighbour that only disturbs. In a partition that it shares,
 * a task also waits for others, and its curve is of what it does itself. */
static bool learn(struct task *task)
{
	bool was_wrong = task->others == 0 && curve_learn(&task->curve, task->tpcs, &task->seen);

	task->beside.count = was_wrong ? 0 : task->beside.count;
	return was_wrong;
}

/* Makes another plan with the times that were seen; false: they are those of this one, or it stays for another reason. */
static bool plan_again(struct planning *planning)
{
	static struct planning before; /* large */
	bool is_wrong = false;
	int result = 0;

	for (struct task *task = planning->tasks.list; task < planning->tasks.list + planning->tasks.count && result == 0; task++) {
		result = pids_add(&planning->room.pids, task->pid, &planning->why_ended);
		task->had_quota = task->had_quota || task->quota_us > 0;
		task->has_lent = task->has_lent || task->lend_us > 0;
		task->has_borrowed = task->has_borrowed || task->borrows;
	}
	before = *planning;
	for (unsigned int i = 0; i < planning->problem.count; i++)
		is_wrong = learn(planning->of[i]) || is_wrong;
	if (is_wrong && result == 0)
		result = ++planning->rounds < ROUNDS ? make(planning, &before.why_ended) : error_set(&before.why_ended, "%d plans are enough", ROUNDS);
	if (result < 0)
		*planning = before;
	return is_wrong && result == 0;
}

/* Does and checks it, as far as that is wanted. */
static int carry_out(struct planning *planning, struct error *error)
{
	const struct options *options = planning->options;
	int result = options->apply ? tasks_apply(&planning->tasks, &planning->room, error) : 0;
	bool is_changed = options->apply && (result == 0 || planning->rounds > 0);

	if (result == 0 && !options->json)
		print(planning);
	fflush(stdout);
	if (result == 0 && options->check_seconds > 0) {
		result = tasks_check(planning->of, planning->problem.count, options->check_seconds, error);
		if (result == 0 && !options->json)
			print_checks(planning);
	}
	return result < 0 && is_changed ? EXIT_CHANGED : result;
}

static int act(struct planning *planning, struct error *error)
{
	const struct options *options = planning->options;
	int result = prepare(planning, error);
	bool goes_on = true;

	if (result == 0)
		result = make(planning, error);
	while (result == 0 && goes_on) {
		result = carry_out(planning, error);
		goes_on = result == 0 && options->apply && options->check_seconds > 0 && plan_again(planning);
		if (goes_on && !options->json)
			printf("\nPlanned anew, with the times that were measured:\n\n");
	}
	if (result == 0 && planning->why_ended.reason[0] && !options->json)
		printf("\nThis plan stays: %s.\n", planning->why_ended.reason);
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
