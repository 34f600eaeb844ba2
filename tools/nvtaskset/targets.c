#include "targets.h"

#include <stdlib.h>

static int add_target(struct targets *targets, pid_t pid, struct error *error)
{
	struct editor *editor = &targets->editors[targets->count];
	int result = -1;

	if (editor_open(editor, pid, error) == SEGMENT_FOUND) {
		result = editor_read(editor, &targets->revisions[targets->count], error);
		if (result == 0)
			targets->count++;
		else
			editor_close(editor);
	}
	return result;
}

int targets_open(struct targets *targets, const struct pids *tree, struct error *error)
{
	struct error first = {.reason = ""}, other;

	targets->editors = calloc(tree->count, sizeof *targets->editors);
	targets->revisions = calloc(tree->count, sizeof *targets->revisions);
	if (!targets->editors || !targets->revisions)
		return error_set(error, "no memory");
	for (size_t i = 0; i < tree->count; i++)
		add_target(targets, tree->list[i], i == 0 ? &first : &other);
	if (targets->count == 0 && tree->count == 1)
		error_set(error, "%s", first.reason);
	else if (targets->count == 0)
		error_set(error, "pid %d: neither it nor any of its %zu descendants has a partition",
		          (int)tree->list[0], tree->count - 1);
	return targets->count > 0 ? 0 : -1;
}

void targets_close(struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		editor_close(&targets->editors[i]);
	free(targets->editors);
	free(targets->revisions);
}

int targets_read(struct targets *targets, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++)
		result = editor_read(&targets->editors[i], &targets->revisions[i], error);
	return result;
}
