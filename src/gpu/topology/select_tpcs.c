#include "select_tpcs.h"

#include <stdlib.h>
#include <string.h>

#define PERCENT_MAX 100

/* The free TPCs of each GPC. */
struct groups {
	unsigned int count;
	struct group {
		struct tpcset free;
		unsigned int free_count;
		unsigned int taken; /* number of TPCs selected from the group */
		bool whole;         /* all TPCs are free */
	} list[TPCSET_MAX];
};

/* --- GPCs --------------------------------------------------------------------------------------------- */

/* The group of a TPC: the GPC of the chip if known, else the virtual GPC. */
static unsigned int chip_gpc(const struct topology_tpc *tpc)
{
	return tpc->gpc != TOPOLOGY_UNKNOWN ? tpc->gpc : tpc->virtual_gpc;
}

/* The virtual GPC if known, else the GPC of the chip: TPCs of different virtual GPCs never run the same cluster. */
static unsigned int virtual_gpc(const struct topology_tpc *tpc)
{
	return tpc->virtual_gpc != TOPOLOGY_UNKNOWN ? tpc->virtual_gpc : tpc->gpc;
}

typedef unsigned int group_of(const struct topology_tpc *tpc);

static void add_group(struct groups *groups, const struct topology *gpu, unsigned int number, group_of *of,
                      const struct tpcset *used)
{
	struct tpcset members = {{0}};

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		if (of(&gpu->tpcs[tpc]) == number)
			tpcset_add(&members, tpc);
	}
	struct group group = {.free = tpcset_without(&members, used)};

	group.free_count = tpcset_count(&group.free);
	group.whole = group.free_count > 0 && tpcset_equal(&group.free, &members);
	groups->list[groups->count++] = group;
}

static void find_groups(struct groups *groups, const struct topology *gpu, group_of *of, const struct tpcset *used)
{
	*groups = (struct groups){.count = 0};
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		bool first = true;

		for (unsigned int before = 0; before < tpc; before++)
			first = first && of(&gpu->tpcs[before]) != of(&gpu->tpcs[tpc]);
		if (first)
			add_group(groups, gpu, of(&gpu->tpcs[tpc]), of, used);
	}
}

/* Moves TPCs of a group to the selection, by rising mask bits: TPCs of the largest virtual GPC first, where clusters
 * find room, and singletons last. */
static void take_group(struct tpcset *selected, struct group *group, unsigned int count, const struct topology *gpu)
{
	for (; count > 0; count--) {
		unsigned int best = TPCSET_MAX;

		for (unsigned int tpc = tpcset_next(&group->free, 0); tpc < TPCSET_MAX;
		     tpc = tpcset_next(&group->free, tpc + 1)) {
			if (best == TPCSET_MAX || gpu->tpcs[tpc].mask_bit < gpu->tpcs[best].mask_bit)
				best = tpc;
		}
		tpcset_add(selected, best);
		tpcset_remove(&group->free, best);
		group->free_count--;
		group->whole = false;
		group->taken++;
	}
}

/* --- packed ------------------------------------------------------------------------------------------- */

/* The best GPC: the largest whole GPC with at most `wanted` TPCs; else the GPC with the least room for all TPCs, a GPC
 * in use before a whole GPC; else the largest. */
static unsigned int rank(const struct group *group, unsigned int wanted)
{
	enum { STEP = TPCSET_MAX + 1 };
	unsigned int free = group->free_count, rank = free;

	if (group->whole && free <= wanted)
		rank = 3 * STEP + free;
	else if (free >= wanted)
		rank = (group->whole ? 1 : 2) * STEP + (TPCSET_MAX - free);
	return rank;
}

static void pack(struct tpcset *selected, struct groups *groups, unsigned int count, const struct topology *gpu)
{
	while (count > 0) {
		struct group *best = &groups->list[0];

		for (unsigned int i = 1; i < groups->count; i++) {
			if (rank(&groups->list[i], count) > rank(best, count))
				best = &groups->list[i];
		}
		unsigned int taken = best->free_count < count ? best->free_count : count;

		take_group(selected, best, taken, gpu);
		count -= taken;
	}
}

/* --- distributed -------------------------------------------------------------------------------------- */

/* CUDA's "portable" size: clusters up to this size run on every GPU with clusters, and libraries launch clusters. */
#define CLUSTER_BLOCKS 8

/* Whether to take the TPCs from `group` rather than from `best`. Better is a group with enough TPCs beside whole
 * chunks; else the group with fewer TPCs taken. */
static bool is_better(const struct group *group, const struct group *best, unsigned int wanted, unsigned int chunk)
{
	bool is_spare = group->free_count % chunk >= wanted, best_is = best && best->free_count % chunk >= wanted;

	return !best || (is_spare != best_is ? is_spare : group->taken < best->taken);
}

static struct group *find_giver(struct groups *groups, unsigned int wanted, unsigned int chunk)
{
	struct group *best = NULL;

	for (unsigned int i = 0; i < groups->count; i++) {
		struct group *group = &groups->list[i];

		if (group->free_count >= wanted && is_better(group, best, wanted, chunk))
			best = group;
	}
	return best;
}

/* In chunks with room for a cluster, as long as there are chunks. */
static void distribute(struct tpcset *selected, struct groups *groups, unsigned int count, const struct topology *gpu)
{
	const unsigned int whole = CLUSTER_BLOCKS / gpu->sms_per_tpc, chunk = whole > 0 ? whole : 1;

	while (count > 0) {
		unsigned int wanted = count < chunk ? count : chunk;
		struct group *group = find_giver(groups, wanted, chunk);

		while (!group)
			group = find_giver(groups, --wanted, chunk);
		take_group(selected, group, wanted, gpu);
		count -= wanted;
	}
}

/* --- selecting ---------------------------------------------------------------------------------------- */

static int too_few(const struct topology *gpu, const struct tpcset *free, unsigned int count, struct error *error)
{
	char text[TPCSET_TEXT];

	if (tpcset_is_empty(free))
		return error_set(error, "%u TPC%s: none of this GPU's %u is free; see nvtaskset -l", count,
		                 count > 1 ? "s" : "", gpu->tpc_count);
	return error_set(error, "%u TPCs: of this GPU's %u only %u are free: %.180s", count, gpu->tpc_count,
	                 tpcset_count(free), tpcset_format_list(free, text));
}

int select_tpcs(struct tpcset *selected, const struct topology *gpu, const struct tpcset *used, unsigned int count,
                enum strategy strategy, struct error *error)
{
	struct tpcset all = topology_all(gpu), unused = tpcset_without(&all, used);
	struct groups groups;

	if (tpcset_count(&unused) < count)
		return too_few(gpu, &unused, count, error);
	find_groups(&groups, gpu, strategy == STRATEGY_PACKED ? chip_gpc : virtual_gpc, used);
	memset(selected, 0, sizeof *selected);
	if (strategy == STRATEGY_PACKED)
		pack(selected, &groups, count, gpu);
	else
		distribute(selected, &groups, count, gpu);
	return 0;
}

int select_parse_count(unsigned int *count, const char *text, const struct topology *gpu, struct error *error)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);
	bool share = strcmp(end, "%") == 0;

	if (text[0] < '0' || text[0] > '9' || (*end != '\0' && !share))
		return error_set(error, "'%.40s': not a number of TPCs such as 20 or 57%%", text);
	if (share && (number < 1 || number > PERCENT_MAX))
		return error_set(error, "%.40s: must be 1%%-100%%", text);
	if (!share && number < 1)
		return error_set(error, "0 TPCs: a program without TPCs would never run");
	if (!share && number > gpu->tpc_count)
		return error_set(error, "%.40s TPCs: this GPU has %u", text, gpu->tpc_count);
	*count = (unsigned int)number;
	if (share)
		*count = (unsigned int)(number * gpu->tpc_count / PERCENT_MAX);
	*count += *count == 0;
	return 0;
}
