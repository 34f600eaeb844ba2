#include "labels.h"

static bool is_on(const struct process *process, const struct gpu_choices *shown)
{
	bool found = false;

	for (unsigned int i = 0; i < shown->count; i++)
		found = found || process_set(process, shown->choices[i].gpu->pci);
	return found;
}

static bool is_shown(pid_t pid, const struct processes *processes, const struct gpu_choices *shown)
{
	bool found = false;

	for (size_t i = 0; i < processes->count; i++)
		found = found || (processes->list[i].pid == pid && is_on(&processes->list[i], shown));
	return found;
}

unsigned int marks_find(const struct marks *marks, pid_t pid)
{
	unsigned int mark = 0;

	while (mark < MARKS_MAX && marks->pids[mark] != pid)
		mark++;
	return mark;
}

void marks_update(struct marks *marks, const struct processes *processes, const struct gpu_choices *shown)
{
	for (unsigned int mark = 0; mark < MARKS_MAX; mark++) {
		if (!is_shown(marks->pids[mark], processes, shown))
			marks->pids[mark] = 0;
	}
	for (size_t i = 0; i < processes->count; i++) {
		pid_t pid = processes->list[i].pid;
		unsigned int free = marks_find(marks, 0);

		if (is_on(&processes->list[i], shown) && marks_find(marks, pid) == MARKS_MAX && free < MARKS_MAX)
			marks->pids[free] = pid;
	}
}

char marks_letter(unsigned int mark)
{
	return mark < 26 ? (char)('A' + mark) : mark < MARKS_MAX ? (char)('a' + mark - 26) : '?';
}
