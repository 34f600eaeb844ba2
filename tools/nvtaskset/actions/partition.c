#include "cli/actions.h"
#include "state/segment/edit.h"

#include "attach.h"
#include "cli/gpus.h"
#include "cli/option_values.h"
#include "cli/time_change.h"
#include "cli/time_given.h"
#include "group.h"
#include "select/process_tree.h"
#include "select/set.h"
#include "select/targets.h"
#include "show/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- showing ------------------------------------------------------------------------------------------ */

/* The line that taskset prints; if several GPUs are shown, it also names the GPU. */
static void show(const struct options *options, pid_t pid, const struct gpu_choices *chosen,
                 const struct segment_revision *revision, const char *when)
{
	for (unsigned int i = 0; i < chosen->count; i++) {
		const struct topology *gpu = chosen->choices[i].gpu;
		const struct segment_partition *partition = segment_find(revision, gpu->pci);
		struct tpcset set = partition ? partition->set : topology_all(gpu);
		char pci[PCI_ADDRESS_TEXT], text[TPCSET_TEXT], where[PCI_ADDRESS_TEXT + 16] = "";

		if (chosen->count > 1)
			snprintf(where, sizeof where, " on GPU %s", pci_address_format(gpu->pci, pci));
		printf("pid %d's %s %s%s: %s\n", (int)pid, when, set_noun(options->notation), where,
		       set_format(&set, options->notation, text));
	}
}

/* --- showing and changing all of them --------------------------------------------------------------------- */

/* Chooses the GPUs of each process. That can fail, so it comes before any change. */
static int choose_all(struct gpu_choices *chosen, const struct targets *targets, const struct options *options,
                      const struct topology_list *list, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++)
		result = target_gpus(&chosen[i], options, list, &targets->revisions[i], error);
	return result;
}

/* A line for each that the process was given of the time; the first one says what became of it. `given` has changed. */
static void show_time(const struct editor *editor, const struct segment_revision *revision,
                      const struct segment_revision *given)
{
	struct segment_time time;
	char text[TIME_TEXT], other[TIME_TEXT], use[TIME_USE];

	segment_read_time(&editor->segment, &time);
	time_describe(revision, &time, use);
	for (enum time_kind kind = 0; kind < TIME_KINDS; kind++) {
		if (time_format(revision, kind, text)) {
			printf("pid %d's %s %s: %s%s\n", (int)editor->pid, time_format(given, kind, other) ? "new" : "current",
			       time_name(kind), text, use);
			use[0] = '\0';
		}
	}
}

static void show_all(const struct targets *targets, const struct options *options, const struct gpu_choices *chosen,
                     const struct segment_revision *before, const struct segment_revision *after)
{
	for (size_t i = 0; i < targets->count; i++) {
		show(options, targets->editors[i].pid, &chosen[i], &before[i], "current");
		if (after && options->action == ACTION_CHANGE)
			show(options, targets->editors[i].pid, &chosen[i], &after[i], "new");
		show_time(&targets->editors[i], after ? &after[i] : &before[i], &options->time);
	}
}

static int write_document(const struct targets *targets, const struct gpu_choices *chosen,
                          const struct segment_revision *before, const struct segment_revision *after,
                          const struct topology_list *list, struct error *error)
{
	json_t *document = json_partitions();
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++) {
		struct segment_time time;

		segment_read_time(&targets->editors[i].segment, &time);
		result = json_add_partition(document, targets->editors[i].pid, &chosen[i], after ? &after[i] : &before[i],
		                            after ? &before[i] : NULL, &time, list, error);
	}
	if (result == 0)
		return json_write(document, false, stdout, error);
	json_decref(document);
	return result;
}

/* -1 with the reason if a partition is not in force. */
static int check_in_force(const struct targets *targets, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++) {
		const struct editor *editor = &targets->editors[i];
		const char *obstacle = target_obstacle(editor);
		struct segment_time time;

		segment_read_time(&editor->segment, &time);
		if (!obstacle)
			obstacle = time_refusal(&time, &targets->revisions[i]);
		if (obstacle)
			result = error_set(error, "pid %d: %s", (int)editor->pid, obstacle);
	}
	return result;
}

static int report(const struct targets *targets, const struct options *options, const struct gpu_choices *chosen,
                  const struct segment_revision *before, const struct segment_revision *after,
                  const struct topology_list *list, struct error *error)
{
	int result = 0;

	if (options->json)
		result = write_document(targets, chosen, before, after, list, error);
	else
		show_all(targets, options, chosen, before, after);
	return result == 0 ? check_in_force(targets, error) : result;
}

static void wait_for_times(const struct targets *targets)
{
	double end = time_wait_end();

	for (size_t i = 0; i < targets->count; i++)
		time_wait(&targets->editors[i].segment, end);
}

/* After the change, a failure does not undo it. The exit status then differs from that of a failure before it. */
static int show_and_change(struct targets *targets, const struct options *options, const struct topology_list *list,
                           const struct gpu_choices *chosen, struct segment_revision *before,
                           const struct segment_revision *wanted, struct error *error)
{
	bool changes = wanted->count > 0 || segment_time_is_given(wanted);
	int status = EXIT_FAILURE;

	if (targets_read(targets, error) < 0)
		return status;
	memcpy(before, targets->revisions, targets->count * sizeof *before);
	if (!changes)
		return report(targets, options, chosen, before, NULL, list, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	int result = editor_change(targets->editors, targets->count, wanted, error);

	if (result == EDITOR_SOME) {
		status = EXIT_CHANGED;
	} else if (result == 0) {
		if (segment_time_is_given(wanted))
			wait_for_times(targets);
		status = targets_read(targets, error) == 0 &&
		                         report(targets, options, chosen, before, targets->revisions, list, error) == 0
		                 ? EXIT_SUCCESS
		                 : EXIT_CHANGED;
	}
	return status;
}

static int show_and_change_all(struct targets *targets, const struct options *options, const struct topology_list *list,
                               const struct segment_revision *wanted, struct error *error)
{
	struct gpu_choices *chosen = calloc(targets->count, sizeof *chosen);
	struct segment_revision *before = calloc(targets->count, sizeof *before);
	int status = EXIT_FAILURE;

	if (!chosen || !before)
		error_set(error, "no memory");
	else if (choose_all(chosen, targets, options, list, error) == 0)
		status = show_and_change(targets, options, list, chosen, before, wanted, error);
	free(chosen);
	free(before);
	return status;
}

static int check_time(const struct targets *targets, const struct options *options, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++)
		result = time_check(targets->editors[i].pid, &targets->revisions[i], &options->time, error);
	return result;
}

/* Every SET is parsed before the first is written, so that a mistake in one changes nothing. */
static int act(struct targets *targets, const struct options *options, const struct topology_list *list,
               const struct pids *tree, struct error *error)
{
	const struct set_limits limits = {.except = tree};
	struct segment_revision wanted = {.count = 0};
	struct gpu_choices chosen;

	if (options->action == ACTION_CHANGE &&
	    (target_gpus(&chosen, options, list, &targets->revisions[0], error) < 0 ||
	     set_find(&wanted, options, &chosen, list, &limits, error) < 0))
		return EXIT_FAILURE;
	segment_put_time(&wanted, &options->time);
	if (check_time(targets, options, error) < 0)
		return EXIT_FAILURE;
	if (options->dry_run) {
		set_print(&wanted);
		return EXIT_SUCCESS;
	}
	return show_and_change_all(targets, options, list, &wanted, error);
}

/* Adds the GPUs that the partition names. False if it names none, or there are too many. */
static bool add_wanted(struct topology_wanted *wanted, const struct segment_revision *revision)
{
	bool fits = revision->count > 0;

	for (uint32_t i = 0; i < revision->count && fits; i++) {
		struct pci_address pci = revision->partitions[i].pci;

		if (!topology_wants(wanted, pci) && wanted->count < TOPOLOGY_GPUS_MAX)
			wanted->gpus[wanted->count++] = pci;
		fits = topology_wants(wanted, pci);
	}
	return fits;
}

static bool has_all(const struct topology_list *list, const struct topology_wanted *wanted)
{
	bool found = true;

	for (unsigned int i = 0; i < wanted->count; i++)
		found = found && topology_find(list, wanted->gpus[i]);
	return found;
}

/* Loads only the GPUs that the partitions name, if no other is needed (-G, --json) and these are visible here: the
 * kernel driver takes time for each GPU (docs/hardware.md, "Topology"). */
static int load_topologies(struct topology_list *list, const struct targets *targets, const struct options *options,
                           struct error *error)
{
	struct topology_wanted wanted = {.count = 0};
	bool few = options->gpu_count == 0 && !options->json;

	for (size_t i = 0; i < targets->count && few; i++)
		few = add_wanted(&wanted, &targets->revisions[i]);
	return few && topology_load_wanted(&wanted, list, NULL) == 0 && has_all(list, &wanted) ? 0
	                                                                                       : topology_load(list, error);
}

/* A SET that is wrong must not have changed a program that is attached to. A number of TPCs is chosen later, and so are
 * the GPUs if there are several and no -G. */
static int check_sets(const struct options *options, const struct topology_list *list, struct error *error)
{
	static struct gpu_choices chosen;
	static struct segment_revision unused;
	static const struct set_limits limits;
	int result = 0;

	if (options->action != ACTION_CHANGE || options->notation == NOTATION_COUNT ||
	    (options->gpu_count == 0 && list->count != 1))
		return 0;
	if (options->gpu_count > 0)
		result = gpus_choose(&chosen, list, options->gpus, options->gpu_count, error);
	else
		chosen = (struct gpu_choices){.count = 1, .choices = {{.gpu = &list->gpus[0]}}};
	return result == 0 ? set_find(&unused, options, &chosen, list, &limits, error) : -1;
}

/* With --attach, topologies are loaded first, since our library gets them. Otherwise they come last: if the process
 * does not exist, none is needed. */
static int open_all(struct targets *targets, const struct options *options, const struct pids *tree,
                    struct topology_list *list, struct error *error)
{
	bool attaches = options->attach && !options->dry_run;

	if (attaches && (topology_load(list, error) < 0 || check_sets(options, list, error) < 0 ||
	                 attach_processes(tree, list, options->verbose, error) < 0))
		return -1;
	if (targets_open(targets, tree, error) < 0)
		return -1;
	return attaches ? 0 : load_topologies(list, targets, options, error);
}

int action_partition(const struct options *options, struct error *error)
{
	static struct topology_list list; /* large */
	struct targets targets = {.count = 0};
	struct pids tree = {.count = 0};
	pid_t pid = 0;
	int status = EXIT_FAILURE;

	if (options->group)
		return group_action(options, error);
	int result = option_pid(&pid, options->pid, error);

	if (result == 0)
		result = options->all_tasks ? process_tree_find(&tree, pid, error) : process_tree_root_only(&tree, pid, error);
	if (result == 0) {
		if (open_all(&targets, options, &tree, &list, error) == 0)
			status = act(&targets, options, &list, &tree, error);
		targets_close(&targets);
		free(tree.list);
	}
	return status;
}
