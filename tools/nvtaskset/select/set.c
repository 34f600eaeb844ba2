#include "set.h"

#include "state/group/file.h"
#include "turn.h"

#include <stdio.h>
#include <string.h>

/* --- the user's text ---------------------------------------------------------------------------------------------- */

static unsigned int gpc_limit(const struct topology *gpu)
{
	unsigned int limit = 0;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		if (gpu->tpcs[tpc].gpc != TOPOLOGY_UNKNOWN && gpu->tpcs[tpc].gpc >= limit)
			limit = gpu->tpcs[tpc].gpc + 1u;
	}
	return limit;
}

static int parse_gpcs(struct tpcset *set, const char *text, const struct topology *gpu, struct error *error)
{
	struct tpcset gpcs;
	struct tpcset chosen = {{0}};
	unsigned int limit = gpc_limit(gpu);

	if (limit == 0)
		return error_set(error, "GPCs: this GPU's are unknown; name TPCs instead (-t)");
	if (tpcset_parse_list(&gpcs, text, limit, "GPC", error) < 0)
		return -1;
	for (unsigned int gpc = tpcset_next(&gpcs, 0); gpc < TPCSET_MAX; gpc = tpcset_next(&gpcs, gpc + 1)) {
		struct tpcset members = topology_gpc(gpu, gpc);

		if (tpcset_is_empty(&members))
			return error_set(error, "GPC %u: this GPU lacks it", gpc);
		chosen = tpcset_or(&chosen, &members);
	}
	*set = chosen;
	return 0;
}

static int parse_mask(struct tpcset *set, const char *text, const struct topology *gpu, struct error *error)
{
	int result = tpcset_parse_mask(set, text, gpu->tpc_count, "TPC", error);

	/* A list without -t, for example, or a COMMAND without SET. */
	if (result < 0 && !tpcset_looks_like_mask(text))
		error_reword(error, "%.200s; -t takes a list of TPCs, -g of GPCs, -n a number of TPCs", error->reason);
	return result;
}

static int select_free(struct tpcset *set, const char *text, enum strategy strategy, const struct topology *gpu,
                       const struct segment_revision *occupied, struct error *error)
{
	const struct segment_partition *used = revision_find_partition(occupied, gpu->pci);
	const struct tpcset none = {{0}};
	unsigned int count = 0;

	if (select_parse_count(&count, text, gpu, error) < 0)
		return -1;
	return select_tpcs(set, gpu, used ? &used->set : &none, count, strategy, error);
}

static struct tpcset fence_on(const struct set_limits *limits, const struct topology *gpu)
{
	const struct segment_partition *fence = limits->fence ? revision_find_partition(limits->fence, gpu->pci) : NULL;
	struct tpcset all = topology_all(gpu);

	return fence ? tpcset_and(&all, &fence->set) : all;
}

static int parse(struct tpcset *set, const char *text, const struct set_given *given, const struct topology *gpu,
                 const struct set_limits *limits, const struct segment_revision *occupied, struct error *error)
{
	int result = -1;

	if (strcmp(text, "all") == 0) {
		*set = fence_on(limits, gpu);
		return 0;
	}
	switch (given->notation) {
	case NOTATION_MASK:
		result = parse_mask(set, text, gpu, error);
		break;
	case NOTATION_TPC_LIST:
		result = tpcset_parse_list(set, text, gpu->tpc_count, "TPC", error);
		break;
	case NOTATION_GPC_LIST:
		result = parse_gpcs(set, text, gpu, error);
		break;
	case NOTATION_COUNT:
		result = select_free(set, text, given->strategy, gpu, occupied, error);
		break;
	}
	if (result == 0 && tpcset_is_empty(set))
		result = error_set(error, "an empty set: a program without TPCs would never run");
	return result;
}

static const char *text_on(const struct gpu_choices *chosen, unsigned int number, const struct set_given *given)
{
	const char *own = chosen->choices[number].set;

	return own ? own : given->text;
}

static int parse_all(struct segment_revision *revision, const struct set_given *given,
                     const struct gpu_choices *chosen, const struct set_limits *limits,
                     const struct segment_revision *occupied, struct error *error)
{
	int result = 0;

	memset(revision, 0, sizeof *revision);
	for (unsigned int i = 0; result == 0 && i < chosen->count; i++) {
		struct segment_partition *partition = &revision->partitions[revision->count++];

		partition->pci = chosen->choices[i].gpu->pci;
		result = parse(&partition->set, text_on(chosen, i, given), given, chosen->choices[i].gpu, limits,
		               occupied, error);
	}
	return result;
}

/* `occupied` names every GPU of the list. */
static void add_limits(struct segment_revision *occupied, const struct set_limits *limits,
                       const struct topology_list *list)
{
	for (uint32_t i = 0; i < occupied->count; i++) {
		struct segment_partition *partition = &occupied->partitions[i];
		const struct topology *gpu = topology_find(list, partition->pci);
		const struct segment_partition *taken = limits->taken ? revision_find_partition(limits->taken,
		                                                                                partition->pci)
		                                                      : NULL;
		struct tpcset all = topology_all(gpu), fence = fence_on(limits, gpu),
			      outside = tpcset_without(&all, &fence);

		partition->set = tpcset_or(&partition->set, &outside);
		if (taken)
			partition->set = tpcset_or(&partition->set, &taken->set);
	}
}

/* -n: finds the TPCs of all programs. A line if the user may not examine all programs. */
static int find_occupied(struct segment_revision *occupied, const struct topology_list *list,
                         const struct set_limits *limits, struct error *error)
{
	bool some_are_hidden = false;
	int result = limits->is_dry_run ? 0 : turn_wait("-n", "name them instead (-t)", error);

	if (result == 0)
		result = occupied_find(occupied, list, limits, &some_are_hidden, error);
	if (result == 0 && some_are_hidden)
		fputs("nvtaskset: -n: programs that you may not look at, those of other users, may have the same "
		      "TPCs\n", stderr);
	return result;
}

int set_find(struct segment_revision *revision, const struct set_given *given, const struct gpu_choices *chosen,
             const struct topology_list *list, const struct set_limits *limits, struct error *error)
{
	struct segment_revision occupied = {.count = 0};

	if (given->notation == NOTATION_COUNT && find_occupied(&occupied, list, limits, error) < 0)
		return -1;
	add_limits(&occupied, limits, list);
	return parse_all(revision, given, chosen, limits, &occupied, error);
}

int set_check_count(const struct set_given *given, const struct gpu_choices *chosen, struct error *error)
{
	unsigned int count;
	int result = 0;

	for (unsigned int i = 0; result == 0 && i < chosen->count; i++) {
		const char *text = text_on(chosen, i, given);

		if (strcmp(text, "all") != 0)
			result = select_parse_count(&count, text, chosen->choices[i].gpu, error);
	}
	return result;
}

int set_find_taken(struct tpcset *taken, const struct topology *gpu, const struct topology_list *list,
                   const struct pids *except, struct error *error)
{
	const struct set_limits limits = {.except = except};
	struct segment_revision occupied;
	bool some_are_hidden;
	int result = occupied_find(&occupied, list, &limits, &some_are_hidden, error);

	*taken = result == 0 ? revision_find_partition(&occupied, gpu->pci)->set : topology_all(gpu);
	return result;
}

int set_find_in_group(struct segment_revision *revision, const struct set_given *given,
                      const struct gpu_choices *chosen, const struct topology_list *list, const struct group *group,
                      const char *path, int *lock, struct error *error)
{
	struct segment_revision taken = {.count = 0};
	const struct set_limits limits = {.group = group, .taken = &taken, .is_dry_run = !lock};
	bool claims = given->notation == NOTATION_COUNT && path;

	if (claims && lock && *lock < 0)
		*lock = group_file_lock_directory(path, error);
	if (claims && ((lock && *lock < 0) || group_file_add_taken(&taken, path, group->identity, error) < 0))
		return -1;
	return set_find(revision, given, chosen, list, &limits, error);
}

void set_print(const struct segment_revision *revision)
{
	char pci[PCI_ADDRESS_TEXT], text[TPCSET_TEXT];

	for (uint32_t i = 0; i < revision->count; i++) {
		const struct segment_partition *partition = &revision->partitions[i];

		if (revision->count > 1)
			printf("%s-G %s:", i > 0 ? " " : "", pci_address_format(partition->pci, pci));
		fputs(tpcset_format_list(&partition->set, text), stdout);
	}
	puts("");
}

const char *set_noun(enum notation notation)
{
	return notation == NOTATION_MASK ? "TPC mask" : "TPC list";
}

const char *set_format(const struct tpcset *set, enum notation notation, char text[TPCSET_TEXT])
{
	return notation == NOTATION_MASK ? tpcset_format_mask(set, text) : tpcset_format_list(set, text);
}
