#include "targets.h"

#include "base/clock.h"
#include "base/proc.h"
#include "base/purse.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"

#include <stdlib.h>

/* How long to wait for several processes, which may be about to have a partition. */
#define TREE_WAIT_MS 2000

/* How long to wait for a driver that is being loaded. */
#define LOADING_WAIT_MS 2000

/* Each round adds at least the next generation, until one adds none: a child may come before its parent in the list. */
static int add_descendants(struct pids *tree, const struct pids *all, const struct pids *parents, struct error *error)
{
	int result = 0;

	for (size_t before = 0; result == 0 && tree->count > before;) {
		before = tree->count;
		for (size_t i = 0; result == 0 && i < all->count; i++) {
			if (pids_have(tree, parents->list[i]) && !pids_have(tree, all->list[i]))
				result = pids_add(tree, all->list[i], error);
		}
	}
	return result;
}

int targets_find_tree(struct pids *tree, pid_t pid, struct error *error)
{
	struct pids all, parents = {.count = 0};
	int result = pids_all(&all, error);

	if (result < 0)
		return -1;
	for (size_t i = 0; result == 0 && i < all.count; i++)
		result = pids_add(&parents, parent_of(all.list[i]), error);
	if (result == 0)
		result = pids_add(tree, pid, error);
	if (result == 0)
		result = add_descendants(tree, &all, &parents, error);
	free(all.list);
	free(parents.list);
	return result;
}

static int add_target(struct targets *targets, pid_t pid, struct error *error)
{
	struct editor *editor = &targets->editors[targets->count];

	if (editor_open(editor, pid, error) != SEGMENT_FOUND)
		return -1;
	if (editor_read(editor, &targets->before[targets->count], error) < 0) {
		editor_close(editor);
		return -1;
	}
	targets->revisions[targets->count] = targets->before[targets->count];
	targets->count++;
	return 0;
}

int targets_open(struct targets *targets, const struct pids *pids, struct error *error)
{
	struct purses purses = {.wait_ms = TREE_WAIT_MS};
	struct error first = {.reason = ""}, other;

	*targets = (struct targets){
		.editors = calloc(pids->count, sizeof *targets->editors),
		.before = calloc(pids->count, sizeof *targets->before),
		.revisions = calloc(pids->count, sizeof *targets->revisions),
		.chosen = calloc(pids->count, sizeof *targets->chosen),
	};
	if (!targets->editors || !targets->before || !targets->revisions || !targets->chosen)
		return error_set(error, "no memory");
	for (size_t i = 0; i < pids->count; i++) {
		bool is_paid = pids->count > 1 && purses_open(&purses, pids->list[i]);

		if (is_paid || pids->count == 1)
			add_target(targets, pids->list[i], i == 0 ? &first : &other);
		if (is_paid)
			purses_close(&purses, pids->list[i]);
	}
	if (targets->count == 0 && pids->count == 1)
		error_set(error, "%s", first.reason);
	else if (targets->count == 0)
		error_set(error, "pid %d: neither it nor any of its %zu descendants has a partition",
		          (int)pids->list[0], pids->count - 1);
	return targets->count > 0 ? 0 : -1;
}

void targets_close(struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		editor_close(&targets->editors[i]);
	free(targets->editors);
	free(targets->before);
	free(targets->revisions);
	free(targets->chosen);
}

bool target_is_gone(const struct targets *targets, size_t number)
{
	return targets->count > 1 && editor_has_ended(&targets->editors[number]);
}

int targets_read(struct targets *targets, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++) {
		result = editor_read(&targets->editors[i], &targets->revisions[i], error);
		if (target_is_gone(targets, i))
			result = 0;
	}
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

int target_gpus(struct gpu_choices *chosen, const struct options *options, const struct topology_list *list,
                const struct segment_revision *revision, struct error *error)
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
