#include "targets.h"

#include "base/clock.h"
#include "base/purse.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"

#include <stdlib.h>

/* How long to wait for several processes, which may be about to have a partition. */
#define TREE_WAIT_MS 2000

/* How long to wait for a driver that is being loaded. */
#define LOADING_WAIT_MS 2000

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
	struct purses purses = {.wait_ms = TREE_WAIT_MS};
	struct error first = {.reason = ""}, other;

	targets->editors = calloc(tree->count, sizeof *targets->editors);
	targets->revisions = calloc(tree->count, sizeof *targets->revisions);
	if (!targets->editors || !targets->revisions)
		return error_set(error, "no memory");
	for (size_t i = 0; i < tree->count; i++) {
		bool is_paid = tree->count > 1 && purses_open(&purses, tree->list[i]);

		if (is_paid || tree->count == 1)
			add_target(targets, tree->list[i], i == 0 ? &first : &other);
		if (is_paid)
			purses_close(&purses, tree->list[i]);
	}
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

const char *target_obstacle(const struct editor *editor)
{
	bool is_at_work = segment_is_at_work(&editor->segment, editor->pid);
	const char *obstacle = segment_obstacle(&editor->segment, editor->pid);

	for (int waited = 0; obstacle && !is_at_work && waited < LOADING_WAIT_MS && !editor_has_ended(editor); waited++) {
		clock_pause_us(1000);
		/* In this order: the library can start its work between the two. */
		is_at_work = segment_is_at_work(&editor->segment, editor->pid);
		obstacle = segment_obstacle(&editor->segment, editor->pid);
	}
	return obstacle;
}

int target_gpus(struct gpu_choices *chosen, const struct options *options,
                       const struct topology_list *list, const struct segment_revision *revision,
                       struct error *error)
{
	int result = 0;

	chosen->count = 0;
	if (options->gpu_count == 0) {
		for (uint32_t i = 0; i < revision->count; i++) {
			const struct topology *gpu = topology_find(list, revision->partitions[i].pci);

			if (gpu)
				chosen->choices[chosen->count++] = (struct gpu_choice){.gpu = gpu};
		}
	}
	if (chosen->count == 0)
		result = gpus_choose(chosen, list, options->gpus, options->gpu_count, error);
	else if (chosen->count > 1 && options->action == ACTION_CHANGE)
		result = error_set(error, "the partition spans %u GPUs: say which one to change (-G)",
		                   chosen->count);
	return result;
}
