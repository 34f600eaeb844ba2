#include "cli/actions.h"

#include "api/time_given.h"
#include "base/error.h"
#include "base/pids.h"
#include "base/proc.h"
#include "base/purse.h"
#include "cli/gpus.h"
#include "cli/tables.h"
#include "cli/time_given.h"
#include "gpu/topology/topology.h"
#include "select/overlap.h"
#include "select/set.h"
#include "select/targets.h"
#include "show/json.h"
#include "state/pool/file.h"
#include "state/segment/edit.h"
#include "state/segment/memory.h"
#include "state/segment/segment.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct subject {
	const struct options *options;
	struct topology_list list;
	struct pids pids;               /* the named processes */
	struct targets targets;         /* the named processes with a partition */
	struct group group;             /* the group of the processes; none without --group */
	struct segment_revision before; /* of the group, or of the first process */
	int lock;                       /* of the group's directory, or -1 */
};

static bool is_group(const struct subject *subject)
{
	return subject->group.memory != NULL;
}

/* Chooses the GPUs of `revision` to show, and to change. */
static int choose_gpus(struct gpu_choices *chosen, const struct subject *subject,
                       const struct segment_revision *revision, struct error *error)
{
	const struct options *options = subject->options;
	int result = target_gpus(chosen, &options->gpus, &subject->list, revision, error);

	if (result == 0 && options->gpus.count == 0 && chosen->count > 1 && options->action == ACTION_CHANGE)
		result = error_set(error, "the partition spans %u GPUs: say which one to change (-G)", chosen->count);
	return result;
}

/* --- showing ------------------------------------------------------------------------------------------------------ */

/* "pid 7" or "group train": the begin of a line, as in taskset. */
#define NAME_TEXT (GROUP_NAME_MAX + 8)

/* taskset's line, with the GPU's name if several GPUs are shown. */
static void show_sets(const char *name, const char *when, enum notation notation, const struct gpu_choices *chosen,
                      const struct segment_revision *revision)
{
	for (unsigned int i = 0; i < chosen->count; i++) {
		const struct topology *gpu = chosen->choices[i].gpu;
		const struct segment_partition *partition = revision_find_partition(revision, gpu->pci);
		struct tpcset set = partition ? partition->set : topology_all(gpu);
		char pci[PCI_ADDRESS_TEXT], text[TPCSET_TEXT], where[PCI_ADDRESS_TEXT + 16] = "";

		if (chosen->count > 1)
			snprintf(where, sizeof where, " on GPU %s", pci_address_format(gpu->pci, pci));
		printf("%s's %s %s%s: %s\n", name, when, set_noun(notation), where, set_format(&set, notation, text));
	}
}

/* Only used with a limit. */
static struct segment_memory_use memory_of_process(const struct editor *editor, struct pci_address pci)
{
	struct segment_memory_use use = segment_read_memory_use(&editor->segment, pci);

	if (use.limit > 0)
		segment_ask_memory_use(pci, &(struct segment_memory_user){editor->pid, &use}, 1);
	return use;
}

/* ": 300M in use", ": 300M of GPU 0 and 2G of GPU 1 in use". */
#define MEMORY_USE 1024
static const char *describe_memory(const struct gpu_choices *chosen, const struct topology_list *list,
                                   const struct editor *editor,
                                   const struct group *group, char text[MEMORY_USE])
{
	bool has_gap = false;
	int length = 0;

	for (unsigned int i = 0; i < chosen->count; i++) {
		struct pci_address pci = chosen->choices[i].gpu->pci;
		struct segment_memory_use use = editor ? memory_of_process(editor, pci)
		                                       : segment_read_memory_use_of_group(group, pci);
		char amount[MEMORY_TEXT], label[PCI_ADDRESS_TEXT];

		has_gap = use.has_gap;
		length += snprintf(text + length, MEMORY_USE - (size_t)length, "%s%s", i == 0 ? ": " : " and ",
		                   setting_format_memory(editor ? use.used : use.together, amount));
		if (chosen->count > 1)
			length += snprintf(text + length, MEMORY_USE - (size_t)length, " of GPU %s",
			                   gpus_label(pci, list, label));
	}
	snprintf(text + length, MEMORY_USE - (size_t)length, " in use%s", has_gap ? "; " SEGMENT_MEMORY_GAP : "");
	return text;
}

/* The sets before and after a change, and a line for each given time and memory; the first line of time has `use`. */
static void show(const char *name, const struct options *options, const struct target *target, const char *use,
                 const char *memory)
{
	char text[SETTING_TEXT];

	show_sets(name, "current", options->set.notation, &target->chosen, &target->before);
	if (options->action == ACTION_CHANGE)
		show_sets(name, "new", options->set.notation, &target->chosen, &target->now);
	for (enum setting setting = 0; setting < SETTING_COUNT; setting++) {
		if (setting_format(&target->now, setting, SETTING_FOR_PEOPLE, text)) {
			printf("%s's %s %s: %s%s\n", name,
			       revision_gives(&options->settings, setting) ? "new" : "current",
			       setting_name(setting), text, setting == SETTING_MEMORY ? memory : use);
			use = "";
		}
	}
}

static void show_processes(const struct subject *subject)
{
	const struct targets *targets = &subject->targets;

	for (size_t i = 0; i < targets->count; i++) {
		const struct target *target = &targets->list[i];
		const struct segment *segment = &targets->editors[i].segment;
		struct segment_time time;
		char name[NAME_TEXT], use[TIME_USE], memory[MEMORY_USE];

		if (target_is_gone(targets, i))
			continue;
		snprintf(name, sizeof name, "pid %d", (int)targets->editors[i].pid);
		segment_read_time(segment, &time);
		show(name, subject->options, target, time_describe(&target->now, &time, use),
		     describe_memory(&target->chosen, &subject->list, &targets->editors[i], NULL, memory));
	}
}

static int add_processes(json_t *document, const struct subject *subject, bool changed, struct error *error)
{
	const struct targets *targets = &subject->targets;
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++) {
		const struct target *target = &targets->list[i];
		struct segment_time time;

		segment_read_time(&targets->editors[i].segment, &time);
		if (!target_is_gone(targets, i))
			result = json_add_partition(document, targets->editors[i].pid, &target->chosen, &target->now,
			                            changed ? &target->before : NULL, &time, &subject->list, error);
	}
	return result;
}

static int write_document(const struct subject *subject, const struct target *group, bool changed, struct error *error)
{
	json_t *document = json_partitions();
	char name[GROUP_NAME_MAX];
	int result = 0;

	if (is_group(subject))
		result = json_add_group(document, group_name(&subject->group, name), &group->chosen, &group->now,
		                        changed ? &group->before : NULL, &subject->list, error);
	if (result == 0)
		result = add_processes(document, subject, changed, error);
	if (result == 0)
		return json_write(document, false, stdout, error);
	json_decref(document);
	return result;
}

/* -1 with the reason if a process does not obey. */
static int check_in_force(const struct subject *subject, struct error *error)
{
	const struct targets *targets = &subject->targets;
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++) {
		const struct editor *editor = &targets->editors[i];
		const char *obstacle = target_obstacle(editor);
		struct segment_time time;

		segment_read_time(&editor->segment, &time);
		if (!obstacle)
			obstacle = time_refusal(&time, is_group(subject) ? &subject->options->settings
			                                                 : &targets->list[i].now);
		if (obstacle && !(is_group(subject) && editor_has_ended(editor)))
			result = error_set(error, "pid %d: %s", (int)editor->pid, obstacle);
	}
	if (result == 0 && !is_group(subject) && targets->left_out.reason[0] != '\0')
		result = error_pass(error, &targets->left_out);
	return result;
}

static int report(const struct subject *subject, const struct gpu_choices *chosen, bool changed, struct error *error)
{
	struct target group = {.before = subject->before, .now = subject->before, .chosen = *chosen};
	char name[NAME_TEXT], memory[MEMORY_USE];
	int result = 0;

	if (is_group(subject))
		group_resolve(&subject->group, &group.now);
	if (subject->options->json) {
		result = write_document(subject, &group, changed, error);
	} else if (is_group(subject)) {
		snprintf(name, sizeof name, "group %s", subject->options->group);
		show(name, subject->options, &group, "",
		     describe_memory(chosen, &subject->list, NULL, &subject->group, memory));
	} else {
		show_processes(subject);
	}
	return result == 0 ? check_in_force(subject, error) : result;
}

/* --- changing ----------------------------------------------------------------------------------------------------- */

/* Strays do not follow their group, and are changed one by one. */
static int change_strays(const struct subject *subject, const struct segment_revision *wanted, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < subject->targets.count; i++) {
		struct editor *editor = &subject->targets.editors[i];
		bool is_stray = targets_place_in_group(&subject->group, editor->pid, editor->segment.group.identity) ==
		                GROUP_STRAY;

		if (is_stray && !editor_has_ended(editor))
			result = editor_change(editor, 1, wanted, error);
	}
	return result < 0 ? EDITOR_SOME : 0;
}

/* Members follow at once, also idle ones, and also where the pool or a stray keeps the former partition. */
static int change_group(struct subject *subject, const struct segment_revision *wanted, struct error *error)
{
	if (group_change(&subject->group, wanted, error) < 0)
		return -1;
	bool is_followed = pool_file_follow(&subject->group, error) == 0;
	int result = change_strays(subject, wanted, is_followed ? error : NULL);

	for (size_t i = 0; i < subject->targets.count; i++)
		editor_ring(&subject->targets.editors[i]);
	return is_followed ? result : EDITOR_SOME;
}

#define ROUNDS 16

/* A new process has its parent's partition of the time of its start. A tree that grows all the time is given up. */
static int change_new_ones(struct subject *subject, const struct segment_revision *wanted, struct error *error)
{
	struct targets *targets = &subject->targets;
	size_t before = 0;
	int result = 0;

	for (int round = 0; result == 0 && round < ROUNDS && before < targets->count; round++) {
		struct pids tree = {.count = 0};

		before = targets->count;
		result = targets_find_tree(&tree, subject->pids.list[0], error) < 0 ||
		         targets_add(targets, &tree, error) < 0 ? -1 : 0;
		free(tree.list);
		for (size_t i = before; result == 0 && i < targets->count; i++)
			result = choose_gpus(&targets->list[i].chosen, subject, &targets->list[i].before, error);
		if (result == 0 && targets->count > before)
			result = editor_change(targets->editors + before, targets->count - before, wanted, error);
	}
	return result < 0 ? EDITOR_SOME : 0;
}

/* Like editor_change. */
static int change_subject(struct subject *subject, const struct segment_revision *wanted, struct error *error)
{
	int result = is_group(subject) ? change_group(subject, wanted, error)
	                               : editor_change(subject->targets.editors, subject->targets.count, wanted, error);

	if (result == 0 && subject->options->all_tasks)
		result = change_new_ones(subject, wanted, error);
	double end = time_wait_end();

	for (size_t i = 0; result == 0 && revision_gives_any(wanted, SETTING_MEMORY) && i < subject->targets.count; i++)
		time_wait(&subject->targets.editors[i].segment, end);
	return result;
}

/* Whether a process with a partition of its own lacks some of `wanted`. */
static bool stays_behind(pid_t pid, const struct segment_revision *wanted, struct purse *purse)
{
	struct segment_revision has, should_have;
	struct editor editor;
	bool stays = false;

	if (editor_look(&editor, pid, purse) == SEGMENT_FOUND) {
		stays = editor_read(&editor, &has, NULL) == 0;
		should_have = has;
		stays = stays && revision_put_all(&should_have, wanted, NULL) == 0 &&
		        memcmp(&should_have, &has, sizeof has) != 0;
		editor_close(&editor);
	}
	return stays;
}

/* False only if the kernel lists no child for any thread: most programs need no search of all processes. */
static bool may_have_children(pid_t pid)
{
	char pattern[64], first[16];
	glob_t files = {.gl_pathc = 0};

	snprintf(pattern, sizeof pattern, "/proc/%d/task/[0-9]*/children", (int)pid);
	bool may = glob(pattern, GLOB_NOSORT, NULL, &files) != 0;

	for (size_t i = 0; i < files.gl_pathc && !may; i++)
		may = proc_read_text(first, sizeof first, "%s", files.gl_pathv[i]) > 0;
	globfree(&files);
	return may;
}

/* The process may be a wrapper: a shell, torchrun. -1 with the reason if a descendant does not follow. */
static int check_descendants(const struct subject *subject, const struct segment_revision *wanted, struct error *error)
{
	struct purse purse = {.wait_ms = 0};
	struct pids tree = {.count = 0};
	pid_t pid = subject->pids.list[0];
	int result = may_have_children(pid) ? targets_find_tree(&tree, pid, error) : 0;

	for (size_t i = 1; result == 0 && i < tree.count; i++) {
		if (purse_begin(&purse, tree.list[i]) && stays_behind(tree.list[i], wanted, &purse))
			result = error_set(error, "pid %d: descendants with partitions of their own, such as pid %d, "
			                          "keep what they have: -a changes all", (int)pid, (int)tree.list[i]);
	}
	free(tree.list);
	return result;
}

/* Chooses the GPUs to show of each process, before any change, since the choice can fail. */
static int choose_all(struct subject *subject, const struct gpu_choices *groups, struct error *error)
{
	struct targets *targets = &subject->targets;
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++) {
		if (is_group(subject))
			targets->list[i].chosen = *groups;
		else
			result = choose_gpus(&targets->list[i].chosen, subject, &targets->list[i].before, error);
	}
	return result;
}

static void warn_of_overlap(const struct subject *subject, const struct segment_revision *wanted)
{
	const struct targets *targets = &subject->targets;
	struct segment_revision changed = is_group(subject) ? subject->before : targets->list[0].now;
	struct pids own = {.count = 0};
	int result = 0;

	revision_put_settings(&changed, wanted);
	changed.count = wanted->count;
	memcpy(changed.partitions, wanted->partitions, sizeof changed.partitions);
	for (size_t i = 0; i < targets->count && result == 0; i++)
		result = pids_add(&own, targets->editors[i].pid, NULL);
	const struct group *group = is_group(subject) ? &subject->group : &targets->editors[0].segment.group;

	if (wanted->count > 0 && subject->options->set.notation != NOTATION_COUNT)
		overlap_report(&changed, &own, group->identity, &subject->list);
	free(own.list);
}

/* A failure after the change does not undo the change: then the exit status is different. */
static int show_and_change(struct subject *subject, const struct gpu_choices *chosen,
                           const struct segment_revision *wanted, struct error *error)
{
	struct targets *targets = &subject->targets;
	bool changes = wanted->count > 0 || revision_gives_any(wanted, SETTING_COUNT);

	if (choose_all(subject, chosen, error) < 0 || targets_read(targets, error) < 0)
		return EXIT_FAILURE;
	for (size_t i = 0; i < targets->count; i++)
		targets->list[i].before = targets->list[i].now;
	int result = changes ? change_subject(subject, wanted, error) : 0;

	bool is_alone = changes && !is_group(subject) && !subject->options->all_tasks;

	if (result == 0 && (targets_read(targets, error) < 0 || report(subject, chosen, changes, error) < 0 ||
	                    (is_alone && check_descendants(subject, wanted, error) < 0)))
		result = EDITOR_SOME;
	if (result == 0)
		warn_of_overlap(subject, wanted);
	return result == 0 ? EXIT_SUCCESS : result == EDITOR_SOME && changes ? EXIT_CHANGED : EXIT_FAILURE;
}

/* --- the wanted partition ----------------------------------------------------------------------------------------- */

static int find_wanted(struct subject *subject, struct segment_revision *wanted, const struct gpu_choices *chosen,
                       struct error *error)
{
	const struct options *options = subject->options;
	const struct set_limits limits = {.except = &subject->pids, .is_dry_run = options->dry_run};
	bool claims = options->set.notation == NOTATION_COUNT && subject->group.is_file;
	char path[PATH_MAX];

	if (!is_group(subject))
		return set_find(wanted, &options->set, chosen, &subject->list, &limits, error);
	if (claims && !strchr(options->group, '/'))
		return error_set(error,
		                 "--group %.60s: -n needs the path of its file, in whose directory TPCs are claimed",
		                 options->group);
	if (claims && !realpath(options->group, path))
		return error_set_errno(error, "%.200s", options->group);
	return set_find_in_group(wanted, &options->set, chosen, &subject->list, &subject->group, claims ? path : NULL,
	                         options->dry_run ? NULL : &subject->lock, error);
}

static int check_times(const struct subject *subject, struct error *error)
{
	const struct targets *targets = &subject->targets;
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++)
		result = api_check_time(targets->editors[i].pid, &subject->options->settings, error);
	return result;
}

/* Every SET is parsed before the first is written: a mistake in one changes nothing. */
static int act(struct subject *subject, struct error *error)
{
	const struct options *options = subject->options;
	struct segment_revision wanted = {.count = 0};
	struct gpu_choices chosen = {.count = 0};
	bool sets = options->action == ACTION_CHANGE;

	if (((sets || is_group(subject)) && choose_gpus(&chosen, subject, &subject->before, error) < 0) ||
	    (sets && find_wanted(subject, &wanted, &chosen, error) < 0) || check_times(subject, error) < 0)
		return EXIT_FAILURE;
	revision_put_settings(&wanted, &options->settings);
	if (options->dry_run) {
		set_print(&wanted);
		return EXIT_SUCCESS;
	}
	return show_and_change(subject, &chosen, &wanted, error);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Adds the GPUs of the partition. False if there are none, or too many. */
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

/* If no other GPU is needed (-G, --json), loads only the GPUs of the partitions, if visible here: the kernel driver
 * takes time for each GPU (hardware.md, "Topology"). */
static int load_topologies(struct subject *subject, struct error *error)
{
	struct topology_wanted wanted = {.count = 0};
	bool few = subject->options->gpus.count == 0 && !subject->options->json && !is_group(subject);

	for (size_t i = 0; i < subject->targets.count && few; i++)
		few = add_wanted(&wanted, &subject->targets.list[i].before);
	return few && topology_load_wanted(&wanted, &subject->list, NULL) == 0 && has_all(&subject->list, &wanted)
	               ? 0
	               : topology_load(&subject->list, error);
}

/* A wrong SET must not have changed a program to be attached to. A number of TPCs is chosen later, and likewise the
 * GPUs if there are several and no -G. */
static int check_sets(const struct subject *subject, struct error *error)
{
	const struct options *options = subject->options;
	const struct topology_list *list = &subject->list;
	static struct gpu_choices chosen;
	static struct segment_revision unused;
	static const struct set_limits limits;
	int result = 0;

	if (options->action != ACTION_CHANGE || options->set.notation == NOTATION_COUNT ||
	    (options->gpus.count == 0 && list->count != 1))
		return 0;
	if (options->gpus.count > 0)
		result = gpus_choose(&chosen, list, &options->gpus, error);
	else
		chosen = (struct gpu_choices){.count = 1, .choices = {{.gpu = &list->gpus[0]}}};
	return result == 0 ? set_find(&unused, &options->set, &chosen, list, &limits, error) : -1;
}

/* Each process takes some descriptors. */
static void allow_many(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

/* With --attach, topologies are loaded first, for our library. Otherwise last: without the process, they are not
 * needed. */
static int open_processes(struct subject *subject, struct error *error)
{
	const struct options *options = subject->options;
	bool attaches = options->attach && !options->dry_run;
	pid_t pid = 0;

	if (tables_parse_pid(&pid, options->pid, error) < 0 ||
	    (options->all_tasks ? targets_find_tree(&subject->pids, pid, error)
	                        : pids_add(&subject->pids, pid, error)) < 0)
		return -1;
	if (attaches && (topology_load(&subject->list, error) < 0 || check_sets(subject, error) < 0 ||
	                 attach_processes(&subject->pids, &subject->list, options->verbose, error) < 0))
		return -1;
	allow_many();
	if (targets_open(&subject->targets, &subject->pids, error) < 0)
		return -1;
	subject->before = subject->targets.list[0].before;
	return attaches ? 0 : load_topologies(subject, error);
}

static int open_group(struct subject *subject, struct error *error)
{
	uint64_t number;

	allow_many();
	if (targets_group(&subject->group, subject->options->group, error) < 0 ||
	    load_topologies(subject, error) < 0 ||
	    targets_open_group(&subject->targets, &subject->group, error) < 0)
		return -1;
	return group_read(&subject->group, &subject->before, &number)
	               ? 0
	               : error_set(error, "--group %.60s: it is damaged", subject->options->group);
}

int action_partition(const struct options *options, struct error *error)
{
	static struct subject subject; /* large */
	int status = EXIT_FAILURE;

	subject = (struct subject){.options = options, .group = group_closed, .lock = -1};
	if ((options->group ? open_group(&subject, error) : open_processes(&subject, error)) == 0)
		status = act(&subject, error);
	targets_close(&subject.targets);
	free(subject.pids.list);
	group_close(&subject.group);
	if (subject.lock >= 0)
		close(subject.lock);
	return status;
}
