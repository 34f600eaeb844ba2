#include "actions.h"

#include "gpus.h"
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

static int work(struct segment *segment, const struct options *options, pid_t pid, struct error *error)
{
	static struct topology_list list;
	struct segment_revision revision, wanted;
	struct gpu_choices chosen;
	bool changes = options->action == ACTION_CHANGE;

	if (topology_load(&list, error) < 0 || read_revision(segment, &revision, error) < 0 ||
	    choose_gpus(&chosen, options, &list, &revision, error) < 0 ||
	    /* All SETs before the first is written: a mistake in one changes nothing. */
	    (changes && set_parse_all(&wanted, options, &chosen, error) < 0))
		return -1;
	show(options, pid, &chosen, &revision, "current");
	if (changes) {
		if (change(segment, &wanted, error) < 0 || read_revision(segment, &revision, error) < 0)
			return -1;
		show(options, pid, &chosen, &revision, "new");
	}
	return 0;
}

int action_partition(const struct options *options, struct error *error)
{
	struct segment segment;
	pid_t pid = 0;
	int result = -1;

	if (parse_pid(&pid, options->pid, error) == 0 && segment_open(&segment, pid, error) == SEGMENT_FOUND) {
		result = work(&segment, options, pid, error);
		segment_close(&segment);
	}
	return result;
}
