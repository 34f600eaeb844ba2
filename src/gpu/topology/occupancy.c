#include "topology.h"

#include "base/extremes.h"

/* Groups for clusters, by the number of the virtual GPC; the last group has all TPCs of unknown virtual GPCs. */
#define GROUPS (TOPOLOGY_GPCS_MAX + TPCSET_MAX + 1)

/* The number of TPCs of a set in each group. For the launch path: looks at each TPC once. */
struct group_counts {
	uint16_t tpcs[GROUPS];
};

static unsigned int group_of(const struct topology *topology, unsigned int tpc)
{
	return (unsigned int)min_u64(topology->tpcs[tpc].virtual_gpc, GROUPS - 1);
}

static struct group_counts count_groups(const struct topology *topology, const struct tpcset *set)
{
	struct group_counts counts = {{0}};

	for (unsigned int tpc = tpcset_next(set, 0); tpc < topology->tpc_count; tpc = tpcset_next(set, tpc + 1))
		counts.tpcs[group_of(topology, tpc)]++;
	return counts;
}

static bool holds_cluster(const struct occupancy *need, unsigned int tpcs)
{
	return tpcs * need->topology->sms_per_tpc >= need->shape.cluster;
}

/* Whether the virtual GPCs, which hold clusters, are known. Otherwise only the judgement of the driver is certain. */
static bool knows_groups(const struct occupancy *need)
{
	return need->shape.cluster <= 1 || need->topology->tpcs[0].virtual_gpc != TOPOLOGY_UNKNOWN;
}

static struct tpcset find_possible(const struct occupancy *need, const struct tpcset *judged)
{
	struct tpcset all = topology_all(need->topology), possible = {{0}};
	struct group_counts counts = count_groups(need->topology, &all);

	if (!knows_groups(need))
		return *judged;
	for (unsigned int tpc = 0; tpc < need->topology->tpc_count; tpc++) {
		if (holds_cluster(need, counts.tpcs[group_of(need->topology, tpc)]))
			tpcset_add(&possible, tpc);
	}
	return possible;
}

struct occupancy occupancy_of(const struct topology *topology, const struct qmd_shape *shape,
                              unsigned int blocks_per_sm, const struct tpcset *judged)
{
	struct occupancy need = {.topology = topology, .shape = *shape, .blocks_per_sm = blocks_per_sm};

	need.possible = find_possible(&need, judged);
	return need;
}

/* Clusters need a group with room for a cluster; TPCs outside do not count. */
bool occupancy_fits(const struct occupancy *need, const struct tpcset *set)
{
	struct tpcset usable = tpcset_and(set, &need->possible);
	struct group_counts counts = count_groups(need->topology, &usable);
	unsigned int blocks = 0;
	bool any = false;

	if (!knows_groups(need))
		return tpcset_equal(&usable, &need->possible);
	for (unsigned int tpc = tpcset_next(&usable, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&usable, tpc + 1)) {
		uint16_t *tpcs = &counts.tpcs[group_of(need->topology, tpc)];

		if (*tpcs > 0 && (need->shape.cluster <= 1 || holds_cluster(need, *tpcs))) {
			unsigned int sms = *tpcs * need->topology->sms_per_tpc;

			blocks += sms / need->shape.cluster * need->shape.cluster * need->blocks_per_sm;
			any = true;
		}
		*tpcs = 0;
	}
	return any && blocks >= need->shape.cooperative;
}

/* Adds the best group to the set: of the groups with room for a cluster, the group with the fewest missing TPCs. False
 * without a further group. */
static bool add_group(const struct occupancy *need, struct tpcset *set)
{
	struct tpcset best = {{0}};
	unsigned int best_missing = TPCSET_MAX;

	for (unsigned int tpc = tpcset_next(&need->possible, 0); tpc < TPCSET_MAX;
	     tpc = tpcset_next(&need->possible, tpc + 1)) {
		struct tpcset group = topology_cluster_group(need->topology, &need->possible, tpc);
		struct tpcset missing = tpcset_without(&group, set);
		unsigned int count = tpcset_count(&missing);

		if (count > 0 && count < best_missing && holds_cluster(need, tpcset_count(&group))) {
			best = missing;
			best_missing = count;
		}
	}
	*set = tpcset_or(set, &best);
	return best_missing < TPCSET_MAX;
}

/* Adds the groups with room for a cluster and with a part in the set. Programs widened into the same group would hang,
 * if the kernels wait for kernels on another GPU (facts.md). */
static struct tpcset add_own_groups(const struct occupancy *need, const struct tpcset *set)
{
	struct tpcset all = *set;

	for (unsigned int tpc = tpcset_next(set, 0); tpc < TPCSET_MAX; tpc = tpcset_next(set, tpc + 1)) {
		struct tpcset group = topology_cluster_group(need->topology, &need->possible, tpc);

		all = tpcset_or(&all, &group);
	}
	return all;
}

/* The driver accepted the launch, so it fits into the whole GPU. */
struct tpcset occupancy_find_room(const struct occupancy *need, const struct tpcset *allowed,
                                  const struct tpcset *preferred)
{
	struct tpcset set = tpcset_and(preferred, allowed);
	bool more = true;

	if (!occupancy_fits(need, &set))
		set = tpcset_and(allowed, &need->possible);
	if (need->shape.cluster > 1 && knows_groups(need) && !occupancy_fits(need, &set))
		set = add_own_groups(need, &set);
	while (more && !occupancy_fits(need, &set))
		more = add_group(need, &set);
	/* The set is empty if our topology has no room although the driver found room. */
	return tpcset_is_empty(&set) ? *allowed : set;
}
