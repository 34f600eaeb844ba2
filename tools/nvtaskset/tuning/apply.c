/* Does what a plan says, and looks whether it holds. */
#include "tasks.h"

#include "api/time_given.h"
#include "base/clock.h"
#include "sampler.h"
#include "select/targets.h"
#include "start.h"

#include <stdio.h>
#include <unistd.h>

/* --- the command of a task ------------------------------------------------------------------------------------------------- */

void task_words(const struct task *task, const struct room *room, char text[TASK_TEXT], char *words[TASK_OWN_WORDS])
{
	char *end = text, list[TPCSET_TEXT];
	int count = 0;
	/* Each word is put behind the last one in the text. */
#define WORD(...) (words[count++] = end, end += 1 + sprintf(end, __VA_ARGS__))

	WORD("nvtaskset");
	if (task->pid == 0) {
		WORD("--mps");
		WORD("%s", start_mps(room->options));
	}
	WORD("-G");
	WORD("%s", room->gpu);
	if (task->priority > 0) {
		WORD("--priority");
		WORD("%u", task->priority);
	}
	if (task->quota_us > 0 || task->had_quota) {
		WORD("--quota");
		WORD("%llums/10ms", task->quota_us > 0 ? (unsigned long long)task->quota_us / 1000 : 10);
	}
	if (task->lend_us > 0)
		WORD("--lend=%lluus", (unsigned long long)task->lend_us);
	else if (task->has_lent)
		WORD("--lend=off");
	if (task->borrows || task->has_borrowed)
		WORD(task->borrows ? "--borrow" : "--borrow=off");
	WORD(task->pid > 0 ? "-tp" : "-t");
	WORD("%s", tpcset_format_list(&task->place.set, list));
	if (task->pid > 0)
		WORD("%d", (int)task->pid);
#undef WORD
	words[count] = NULL;
}

/* --- all or nothing ---------------------------------------------------------------------------------------------------------- */

/* As -p would change it. */
static int change(struct keeper *keeper, struct editor *editor, const struct task *task, const struct room *room, char *words[], struct error *error)
{
	struct segment_revision wanted = {.count = 1, .partitions = {task->place}}, before;
	struct options options;
	const char *obstacle = target_obstacle(editor);

	if (obstacle)
		return error_set(error, "pid %d: %s", (int)task->pid, obstacle);
	if (start_parse(&options, words, NULL, error) < 0 || editor_read(editor, &before, error) < 0 ||
	    api_check_time(task->pid, &before, &options.time, error) < 0)
		return -1;
	segment_put_time(&wanted, &options.time);
	return keeper_change(keeper, editor, &room->whole, &wanted, error);
}

static int apply_task(struct keeper *keeper, struct task *task, const struct room *room, struct error *error)
{
	char text[TASK_TEXT], *words[TASK_OWN_WORDS];
	struct editor editor;
	int result;

	task_words(task, room, text, words);
	if (task->pid == 0) {
		result = start_program(&task->pid, words, task->command, STDERR_FILENO, keeper, error);
	} else {
		result = start_await(&editor, task->pid, false, error);
		if (result == 0) {
			result = change(keeper, &editor, task, room, words, error);
			editor_close(&editor);
		}
	}
	return result;
}

int tasks_apply(struct tasks *tasks, const struct room *room, struct error *error)
{
	struct keeper keeper;
	int result = keeper_start(&keeper, error);

	/* First those that run, then those that are started. */
	for (int is_new = 0; is_new < 2; is_new++) {
		for (size_t i = 0; i < tasks->count && result == 0; i++) {
			if ((tasks->list[i].pid == 0) == is_new)
				result = apply_task(&keeper, &tasks->list[i], room, error);
		}
	}
	if (keeper_end(&keeper, result < 0) < 0)
		result = result < 0 ? error_set(error, "not all could be taken back, after: %.200s", error->reason)
		                    : error_set(error, "the child that gives partitions back has ended");
	return result;
}

/* --- whether it holds ---------------------------------------------------------------------------------------------------------- */

int tasks_check(struct task *const tasks[], size_t count, double seconds, struct error *error)
{
	static struct sampled programs[TASKS_MAX];
	struct sampler sampler = {.programs = programs};
	int result = 0;

	for (size_t i = 0; i < count && result == 0; i++) {
		result = start_await(&programs[i].editor, tasks[i]->pid, true, error);
		if (result == 0)
			result = sampled_open(&programs[sampler.count++], tasks[i]->place.pci, error);
	}
	if (result == 0 && count > 0)
		result = sampler_start(&sampler, error);
	if (result == 0 && count > 0) {
		for (double end = clock_ms() + seconds * 1000; clock_ms() < end;)
			clock_pause_us(20000);
		sampler_stop(&sampler);
	}
	for (size_t i = 0; i < sampler.count; i++) {
		struct jobs_rule rule = jobs_rule(programs[i].bursts, programs[i].count);
		size_t jobs = jobs_split(programs[i].bursts, programs[i].count, &rule);

		tasks[i]->seen = jobs_times(programs[i].bursts, jobs, tasks[i]->needs.deadline_ns);
		sampled_close(&programs[i]);
	}
	return result;
}
