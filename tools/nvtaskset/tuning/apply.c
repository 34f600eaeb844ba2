/* Does what a plan says, and looks whether it holds. */
#include "tasks.h"

#include "api/time_given.h"
#include "base/clock.h"
#include "cli/parse.h"
#include "sampler.h"
#include "select/targets.h"
#include "start.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the command of a task ------------------------------------------------------------------------------------------------- */

void task_arguments(const struct task *task, const char *mps, const char *gpu, char text[TPCSET_TEXT + 256], char *arguments[TASK_ARGUMENTS])
{
	char *end = text, list[TPCSET_TEXT];
	int count = 0;
	/* Each word is put behind the last one in the text. */
#define WORD(...) (arguments[count++] = end, end += 1 + sprintf(end, __VA_ARGS__))

	WORD("nvtaskset");
	if (task->pid == 0) {
		WORD("--mps");
		WORD("%s", mps);
	}
	WORD("-G");
	WORD("%s", gpu);
	if (task->priority > 0) {
		WORD("--priority");
		WORD("%u", task->priority);
	}
	if (task->quota_us > 0) {
		WORD("--quota");
		WORD("%llums/10ms", (unsigned long long)task->quota_us / 1000);
	}
	if (task->lend_us > 0)
		WORD("--lend=%lluus", (unsigned long long)task->lend_us);
	if (task->borrows)
		WORD("--borrow");
	WORD(task->pid > 0 ? "-tp" : "-t");
	WORD("%s", tpcset_format_list(&task->place.set, list));
	if (task->pid > 0)
		WORD("%d", (int)task->pid);
#undef WORD
	for (int i = 0; task->command[i]; i++)
		arguments[count++] = task->command[i];
	arguments[count] = NULL;
}

/* --- all or nothing ---------------------------------------------------------------------------------------------------------- */

struct applying {
	struct tasks *tasks;
	const char *mps, *gpu;
	struct keeper keeper;
	struct editor editors[TASKS_MAX]; /* of those that run */
	size_t places[TASKS_MAX], count;
};

static int open_running(struct applying *applying, struct error *error)
{
	int result = 0;

	for (size_t i = 0; i < applying->tasks->count && result == 0; i++) {
		const struct task *task = &applying->tasks->list[i];
		struct editor *editor = &applying->editors[applying->count];

		if (task->pid == 0)
			continue;
		result = start_await(editor, task->pid, false, error);
		if (result < 0)
			continue;
		applying->places[applying->count++] = i;
		const char *obstacle = target_obstacle(editor);

		if (obstacle)
			result = error_set(error, "pid %d: %s", (int)task->pid, obstacle);
	}
	return result;
}

/* As -p would change it. */
static int change(struct applying *applying, size_t number, struct error *error)
{
	const struct task *task = &applying->tasks->list[applying->places[number]];
	char text[TPCSET_TEXT + 256], *arguments[TASK_ARGUMENTS];
	struct segment_revision wanted = {.count = 1, .partitions = {task->place}}, before;
	struct options options;
	int count = 0;

	task_arguments(task, applying->mps, applying->gpu, text, arguments);
	while (arguments[count])
		count++;
	optind = 0;
	if (parse_options(&options, count, arguments, error) < 0 || editor_read(&applying->editors[number], &before, error) < 0 ||
	    api_check_time(task->pid, &before, &options.time, error) < 0)
		return -1;
	segment_put_time(&wanted, &options.time);
	return keeper_change(&applying->keeper, &applying->editors[number], number, &wanted, error);
}

static int start_task(struct applying *applying, struct task *task, struct error *error)
{
	char text[TPCSET_TEXT + 256], *arguments[TASK_ARGUMENTS];
	pid_t pid;

	task_arguments(task, applying->mps, applying->gpu, text, arguments);
	int result = start_program(&pid, arguments, STDERR_FILENO, error);

	if (result == 0) {
		task->pid = pid;
		keeper_add(&applying->keeper, pid);
	}
	return result;
}

static int apply(struct applying *applying, const struct segment_revision *whole, struct error *error)
{
	int result = open_running(applying, error);

	if (result == 0)
		result = keeper_start(&applying->keeper, applying->editors, applying->count, whole, error);
	for (size_t i = 0; i < applying->count && result == 0; i++)
		result = change(applying, i, error);
	for (size_t i = 0; i < applying->tasks->count && result == 0; i++) {
		struct task *task = &applying->tasks->list[i];

		if (task->pid == 0 && task->tpcs > 0)
			result = start_task(applying, task, error);
	}
	if (keeper_end(&applying->keeper, result < 0) < 0)
		result = result < 0 ? error_set(error, "not all could be taken back, after: %.200s", error->reason)
		                    : error_set(error, "the child that gives partitions back has ended");
	return result;
}

int tasks_apply(struct tasks *tasks, const struct segment_revision *whole, const char *mps, const char *gpu, struct error *error)
{
	static struct applying applying; /* large */

	applying = (struct applying){.tasks = tasks, .mps = mps, .gpu = gpu};
	int result = apply(&applying, whole, error);

	for (size_t i = 0; i < applying.count; i++)
		editor_close(&applying.editors[i]);
	return result;
}

/* --- whether it holds ---------------------------------------------------------------------------------------------------------- */

static void evaluate(const struct task *task, struct sampled *program, struct task_check *check)
{
	struct jobs_rule rule = jobs_rule(program->bursts, program->count);
	size_t jobs = jobs_split(program->bursts, program->count, &rule);
	uint64_t *lengths = calloc(jobs + 1, sizeof *lengths);

	*check = (struct task_check){.jobs = lengths ? jobs : 0};
	for (size_t i = 0; lengths && i < jobs; i++) {
		lengths[i] = program->bursts[i].end_ns - program->bursts[i].begin_ns;
		check->missed += lengths[i] > task->deadline_ns;
	}
	if (lengths && jobs > 0) {
		check->median_ns = (double)jobs_median(lengths, check->jobs);
		check->longest_ns = (double)lengths[check->jobs - 1];
	}
	free(lengths);
}

int tasks_check(const struct tasks *tasks, double seconds, struct task_check checks[TASKS_MAX], struct error *error)
{
	static struct editor editors[TASKS_MAX];
	static struct sampled programs[TASKS_MAX];
	size_t places[TASKS_MAX] = {0};
	struct sampler sampler = {.programs = programs};
	int result = 0;

	for (size_t i = 0; i < tasks->count && result == 0; i++) {
		const struct task *task = &tasks->list[i];
		struct editor *editor = &editors[sampler.count];

		if (task->is_best_effort)
			continue;
		result = start_await(editor, task->pid, true, error);
		if (result == 0 && sampled_open(&programs[sampler.count], editor, task->place.pci, error) < 0) {
			editor_close(editor);
			result = -1;
		}
		places[sampler.count] = i;
		sampler.count += result == 0;
	}
	if (result == 0 && sampler.count > 0)
		result = sampler_start(&sampler, error);
	if (result == 0 && sampler.count > 0) {
		for (double end = clock_ms() + seconds * 1000; clock_ms() < end;)
			clock_pause_us(20000);
		sampler_stop(&sampler);
	}
	for (size_t i = 0; i < sampler.count; i++) {
		if (result == 0)
			evaluate(&tasks->list[places[i]], &programs[i], &checks[places[i]]);
		sampled_close(&programs[i]);
		editor_close(&editors[i]);
	}
	return result;
}
