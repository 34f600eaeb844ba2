/* Applies a plan, and checks the predictions. */
#include "tasks.h"

#include "api/time_given.h"
#include "cli/gpus.h"
#include "cli/parse.h"
#include "terminal/progress.h"

#include <stdio.h>

void task_line(const struct task *task, const struct space *space, char line[PROGRAM_LINE])
{
	char list[TPCSET_TEXT];

	line += sprintf(line, "nvtaskset");
	if (task->pid == 0)
		line += sprintf(line, " --mps %s", program_mps(space->mps));
	line += sprintf(line, " -G %s", space->name);
	if (task->grant.priority > 0)
		line += sprintf(line, " --priority %u", task->grant.priority);
	if (task->grant.quota_us > 0 || task->before.quota_us > 0)
		line += sprintf(line, " --quota %ums/10ms",
		                task->grant.quota_us > 0 ? (unsigned int)(task->grant.quota_us / 1000) : 10);
	if (task->grant.lend_us > 0)
		line += sprintf(line, " --lend=%uus", (unsigned int)task->grant.lend_us);
	else if (task->before.lend_us > 0)
		line += sprintf(line, " --lend=off");
	if (task->grant.borrows || task->before.borrows)
		line += sprintf(line, task->grant.borrows ? " --borrow" : " --borrow=off");
	line += sprintf(line, " %s %s", task->pid > 0 ? "-tp" : "-t", tpcset_format_list(&task->grant.place.set, list));
	if (task->pid > 0)
		sprintf(line, " %d", (int)task->pid);
}

/* Like -p. A plan is for one GPU: a program that works only elsewhere is refused. */
static int change_program(struct editor *editor, const struct task *task, const struct space *space, char *line,
                          struct error *error)
{
	struct segment_revision wanted = {.count = 1, .partitions = {task->grant.place}}, time;
	struct counts counts = {.count = 0};
	char gpu[PCI_ADDRESS_TEXT];

	if (counts_read(&editor->segment, task->pid, &counts, NULL) == 0 && counts.count > 0 &&
	    !pci_address_find(space->gpu->pci, counts.gpus, counts.count, sizeof counts.gpus[0]))
		return error_set(error, "task %.60s: pid %d works on GPU %s, and a plan is for one GPU: this one is "
		                        "for GPU %s (-G)", task->name,
		                 (int)task->pid, gpus_label(counts.gpus[0].pci, &space->list, gpu), space->name);
	if (parse_line_settings(&time, line, error) < 0 || editor_follow(editor, error) < 0 ||
	    api_check_time(task->pid, &time, error) < 0)
		return -1;
	revision_put_settings(&wanted, &time);
	return programs_restorer_change(editor, &wanted, error);
}

static int apply_task(struct task *task, const struct space *space, struct error *error)
{
	char line[PROGRAM_LINE];
	struct editor editor;

	task_line(task, space, line);
	if (task->pid == 0)
		return program_start(&task->pid, line, task->command, true, error);
	if (program_open(&editor, task->pid, false, error) < 0)
		return -1;
	int result = change_program(&editor, task, space, line, error);

	editor_close(&editor);
	return result;
}

int tasks_apply(struct tasks *tasks, const struct space *space, struct error *error)
{
	int result = programs_restorer_start(error);

	for (int is_new = 0; is_new < 2; is_new++) {
		for (size_t i = 0; i < tasks->count && result == 0; i++) {
			if ((tasks->list[i].pid == 0) == is_new)
				result = apply_task(&tasks->list[i], space, error);
		}
	}
	return programs_restorer_end(result < 0 ? RESTORER_ENDS : RESTORER_LEAVES, error) < 0 ? -1 : result;
}

int tasks_check(struct tasks *tasks, double seconds, struct error *error)
{
	static struct sampled programs[PROGRAMS_MAX];
	struct task *of[PROGRAMS_MAX];
	size_t count = 0;
	int result = 0;

	for (struct task *task = tasks->list; task < tasks->list + tasks->count && result == 0; task++) {
		if (task->is_best_effort)
			continue;
		result = task->pid == 0 ? error_set(error, "task %.60s: does not run; --apply starts it", task->name)
		                        : program_open(&programs[count].editor, task->pid, true, error);
		of[count] = task;
		if (result == 0)
			result = sampler_open(&programs[count++], task->grant.place.pci, error);
	}
	progress_say("watching the programs for %g s", seconds);
	if (result == 0)
		sampler_watch(programs, count, seconds * 1e9);
	progress_end();
	for (size_t i = 0; i < count; i++) {
		struct jobs_rule rule = jobs_rule(programs[i].bursts, programs[i].count, 0);

		of[i]->seen = jobs_times(programs[i].bursts, programs[i].count, &rule, 0, of[i]->needs.deadline_ns);
		sampler_close(&programs[i]);
	}
	return result;
}
