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

unsigned int labels_find(const struct labels *labels, pid_t pid)
{
	unsigned int label = 0;

	while (label < LABELS_MAX && labels->pids[label] != pid)
		label++;
	return label;
}

void labels_update(struct labels *labels, const struct processes *processes, const struct gpu_choices *shown)
{
	for (unsigned int label = 0; label < LABELS_MAX; label++) {
		if (!is_shown(labels->pids[label], processes, shown))
			labels->pids[label] = 0;
	}
	for (size_t i = 0; i < processes->count; i++) {
		pid_t pid = processes->list[i].pid;
		unsigned int free = labels_find(labels, 0);

		if (is_on(&processes->list[i], shown) && labels_find(labels, pid) == LABELS_MAX && free < LABELS_MAX)
			labels->pids[free] = pid;
	}
}

char labels_letter(unsigned int label)
{
	return label < 26 ? (char)('A' + label) : label < LABELS_MAX ? (char)('a' + label - 26) : '?';
}
