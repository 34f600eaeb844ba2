#include "actions.h"

#include "attach.h"
#include "gpus.h"
#include "json.h"
#include "segment.h"
#include "set.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_pid(pid_t *pid, const char *text, struct error *error)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > INT_MAX)
		return error_set(error, "pid '%.40s': not a process id", text);
	*pid = (pid_t)number;
	return 0;
}

/* --- which GPUs ------------------------------------------------------------------------------------- */

/* Without -G: the GPUs that the process's partition names, else CUDA's first. */
static int choose_gpus(struct gpu_choices *chosen, const struct options *options,
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

/* --- showing ------------------------------------------------------------------------------------------ */

/* Taskset's line; where several GPUs are shown, it says which one it speaks of. */
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

/* --- changing ----------------------------------------------------------------------------------------- */

static int change(struct segment *segment, const struct segment_revision *wanted, struct error *error)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < wanted->count; i++)
		result = segment_edit(segment, &wanted->partitions[i], error);
	return result;
}

static int read_revision(const struct segment *segment, struct segment_revision *revision,
                         struct error *error)
{
	uint64_t number;

	return segment_read(segment, revision, &number) ? 0 : error_set(error, "its segment is damaged");
}

/* --- whom ---------------------------------------------------------------------------------------------- */

/* The process, and with -a those of its descendants that have a partition. */
struct target {
	pid_t pid;
	struct segment segment;
	struct segment_revision revision;
};

struct targets {
	size_t count;
	struct target *list;
};

static int add_target(struct targets *targets, const struct target *target, struct error *error)
{
	struct target *more = realloc(targets->list, (targets->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	targets->list = more;
	targets->list[targets->count++] = *target;
	return 0;
}

static int open_target(struct targets *targets, pid_t pid, struct error *error)
{
	struct target target = {.pid = pid};
	int result = -1;

	if (segment_open(&target.segment, pid, error) == SEGMENT_FOUND) {
		result = read_revision(&target.segment, &target.revision, error);
		if (result == 0)
			result = add_target(targets, &target, error);
		if (result < 0)
			segment_close(&target.segment);
	}
	return result;
}

/* Of a family, a shell and what it has started for example, many never come to CUDA. */
static int open_family(struct targets *targets, const struct pids *family, struct error *error)
{
	struct error why = {.reason = ""};

	for (size_t i = 0; i < family->count; i++)
		open_target(targets, family->list[i], i == 0 ? &why : NULL);
	if (targets->count == 0 && family->count == 1)
		error_set(error, "%s", why.reason);
	else if (targets->count == 0)
		error_set(error, "pid %d: neither it nor any of its %zu descendants has a partition",
		          (int)family->list[0], family->count - 1);
	return targets->count > 0 ? 0 : -1;
}

static void close_targets(struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		segment_close(&targets->list[i].segment);
	free(targets->list);
}

/* --- all together ---------------------------------------------------------------------------------------- */

/* Says it in lines at once, or in `document`. */
static int show_and_change(struct target *target, const struct options *options, const struct topology_list *list,
                           const struct segment_revision *wanted, json_t *document, struct error *error)
{
	struct gpu_choices chosen;
	struct segment_revision before = target->revision;
	bool changes = wanted->count > 0;

	if (choose_gpus(&chosen, options, list, &before, error) < 0)
		return -1;
	if (!options->json)
		show(options, target->pid, &chosen, &before, "current");
	if (changes && (change(&target->segment, wanted, error) < 0 ||
	                read_revision(&target->segment, &target->revision, error) < 0))
		return -1;
	if (changes && !options->json)
		show(options, target->pid, &chosen, &target->revision, "new");
	if (options->json)
		return json_add_partition(document, target->pid, &chosen, &target->revision, changes ? &before : NULL,
		                          list, error);
	return 0;
}

/* What was asked for has been done, and yet does not hold. */
static int check_in_force(const struct target *target, struct error *error)
{
	const char *obstacle = segment_obstacle(&target->segment);

	return obstacle ? error_set(error, "pid %d: %s", (int)target->pid, obstacle) : 0;
}

static int show_and_change_all(struct targets *targets, const struct options *options, const struct topology_list *list,
                               const struct segment_revision *wanted, struct error *error)
{
	json_t *document = options->json ? json_partitions() : NULL;
	int result = 0;

	for (size_t i = 0; result == 0 && i < targets->count; i++)
		result = show_and_change(&targets->list[i], options, list, wanted, document, error);
	if (result == 0 && options->json)
		result = json_write(document, false, stdout, error);
	else
		json_decref(document);
	for (size_t i = 0; result == 0 && i < targets->count; i++)
		result = check_in_force(&targets->list[i], error);
	return result;
}

/* Every SET is understood before the first is written: a mistake in one changes nothing. */
static int work(struct targets *targets, const struct options *options, const struct topology_list *list,
                const struct pids *family, struct error *error)
{
	struct segment_revision wanted = {.count = 0};
	struct gpu_choices chosen;
	int result = 0;

	if (options->action == ACTION_CHANGE) {
		result = choose_gpus(&chosen, options, list, &targets->list[0].revision, error);
		if (result == 0)
			result = set_find(&wanted, options, &chosen, list, family, error);
	}
	if (result == 0 && options->dry_run) {
		set_print(&wanted);
		return 0;
	}
	if (result == 0)
		result = show_and_change_all(targets, options, list, &wanted, error);
	return result;
}

/* False where a partition does not say which GPUs it is about, or they are too many. */
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

/* Of the GPUs in the partitions alone, where nothing counts or names others, and they are to be seen from here: each takes
 * the kernel driver 1 to 3 ms (docs/hardware.md). */
static int load_topologies(struct topology_list *list, const struct targets *targets, const struct options *options,
                           struct error *error)
{
	struct topology_wanted wanted = {.count = 0};
	bool few = options->gpu_count == 0 && !options->json;

	for (size_t i = 0; i < targets->count && few; i++)
		few = add_wanted(&wanted, &targets->list[i].revision);
	return few && topology_load_wanted(&wanted, list, NULL) == 0 && has_all(list, &wanted) ? 0
	                                                                                       : topology_load(list, error);
}

/* The library is told of the GPUs. Else they come last: that a process is not there needs none. */
static int open_all(struct targets *targets, const struct options *options, const struct pids *family,
                    struct topology_list *list, struct error *error)
{
	bool attaches = options->attach && !options->dry_run;

	if (attaches && (topology_load(list, error) < 0 || attach_family(family, list, options->verbose, error) < 0))
		return -1;
	if (open_family(targets, family, error) < 0)
		return -1;
	return attaches ? 0 : load_topologies(list, targets, options, error);
}

int action_partition(const struct options *options, struct error *error)
{
	static struct topology_list list; /* large */
	struct targets targets = {.count = 0};
	struct pids family = {.count = 0};
	pid_t pid = 0;
	int result = parse_pid(&pid, options->pid, error);

	if (result == 0)
		result = options->all_tasks ? ancestry_family(&family, pid, error) : ancestry_alone(&family, pid, error);
	if (result == 0) {
		result = open_all(&targets, options, &family, &list, error);
		if (result == 0)
			result = work(&targets, options, &list, &family, error);
		close_targets(&targets);
		free(family.list);
	}
	return result;
}
