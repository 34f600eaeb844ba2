#include "residency.h"

#include "driver/functions.h"

/* What a launch needs, and where it can have it. */
struct fit {
	const struct topology *topology;
	struct qmd_shape shape;
	unsigned int blocks_per_sm;
	struct tpcset possible; /* TPCs on which its blocks can run at all */
};

static struct tpcset enabled_in(const struct topology *topology, const struct qmd_mask *disable)
{
	struct tpcset set = {{0}};

	for (unsigned int tpc = 0; tpc < topology->tpc_count; tpc++) {
		unsigned int bit = topology->tpcs[tpc].mask_bit;

		if (!(disable->words[bit / 64] >> (bit % 64) & 1))
			tpcset_add(&set, tpc);
	}
	return set;
}

/* How many blocks of the kernel an SM holds; the driver knows. Its answer to too much shared memory is 0, and ours to
 * no answer is 1: whoever needs room gets too much of it rather than too little. */
static unsigned int blocks_per_sm(CUfunction function, const struct qmd_shape *shape)
{
	int blocks = 0;

	if (driver.occupancy_blocks(&blocks, function, (int)shape->threads, shape->shared_bytes) != CUDA_SUCCESS)
		blocks = 0;
	return blocks > 0 ? (unsigned int)blocks : 1;
}

static bool holds_cluster(const struct fit *fit, const struct tpcset *group)
{
	return tpcset_count(group) * fit->topology->sms_per_tpc >= fit->shape.cluster;
}

/* Where clusters find room: not known, only what the driver has judged is sure. */
static bool knows_groups(const struct fit *fit)
{
	return fit->shape.cluster <= 1 || fit->topology->tpcs[0].virtual_gpc != TOPOLOGY_UNKNOWN;
}

/* Of the whole GPU. `theirs` is what the driver's own mask leaves. */
static struct tpcset find_possible(const struct fit *fit, const struct tpcset *theirs)
{
	struct tpcset all = topology_all(fit->topology), possible = {{0}};

	if (!knows_groups(fit))
		return *theirs;
	for (unsigned int tpc = tpcset_next(&all, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&all, tpc + 1)) {
		struct tpcset group = topology_cluster_group(fit->topology, &all, tpc);

		if (holds_cluster(fit, &group))
			tpcset_add(&possible, tpc);
	}
	return possible;
}

/* Clusters run in groups that can hold one; whatever lies elsewhere does not count. */
static bool fits(const struct fit *fit, const struct tpcset *set)
{
	struct tpcset usable = tpcset_and(set, &fit->possible), seen = {{0}};
	unsigned int blocks = 0;
	bool any = false;

	if (!knows_groups(fit))
		return tpcset_equal(&usable, &fit->possible);
	for (unsigned int tpc = tpcset_next(&usable, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&usable, tpc + 1)) {
		struct tpcset group = topology_cluster_group(fit->topology, &usable, tpc);

		if (!tpcset_has(&seen, tpc) && (fit->shape.cluster <= 1 || holds_cluster(fit, &group))) {
			unsigned int sms = tpcset_count(&group) * fit->topology->sms_per_tpc;

			blocks += sms / fit->shape.cluster * fit->shape.cluster * fit->blocks_per_sm;
			any = true;
		}
		seen = tpcset_or(&seen, &group);
	}
	return any && blocks >= fit->shape.cooperative;
}

/* The group that helps most for the fewest TPCs: one that can hold a cluster when whole, of which the set has most
 * already. False where there is none left. */
static bool add_group(const struct fit *fit, struct tpcset *set)
{
	struct tpcset best = {{0}};
	unsigned int best_missing = TPCSET_MAX;

	for (unsigned int tpc = tpcset_next(&fit->possible, 0); tpc < TPCSET_MAX;
	     tpc = tpcset_next(&fit->possible, tpc + 1)) {
		struct tpcset group = topology_cluster_group(fit->topology, &fit->possible, tpc);
		struct tpcset missing = tpcset_without(&group, set);
		unsigned int count = tpcset_count(&missing);

		if (count > 0 && count < best_missing && holds_cluster(fit, &group)) {
			best = missing;
			best_missing = count;
		}
	}
	*set = tpcset_or(set, &best);
	return best_missing < TPCSET_MAX;
}

struct qmd_shape fit_shape_of(const struct gpu *gpu, CUfunction function, const void *qmd)
{
	struct qmd_shape shape = qmd_shape_of(gpu->family, qmd);
	int fixed = 0;

	if (driver.function_get_attribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function) != CUDA_SUCCESS)
		fixed = 0;
	shape.shared_bytes -= shape.shared_bytes > (unsigned int)fixed ? (unsigned int)fixed : shape.shared_bytes;
	return shape;
}

bool fit_holds(const struct gpu *gpu, CUfunction function, const struct qmd_shape *shape, const struct tpcset *set)
{
	const struct fit fit = {
		.topology = gpu->topology,
		.shape = *shape,
		.blocks_per_sm = blocks_per_sm(function, shape),
		.possible = topology_all(gpu->topology),
	};

	return fits(&fit, set);
}

/* By where it lies, and not by how it was found: what we take for too little may be all that there is. */
static enum fit_outcome outcome_of(const struct tpcset *set, const struct tpcset *partition, const struct tpcset *theirs)
{
	enum fit_outcome outcome = FIT_IN_BOTH;

	if (!tpcset_is_subset(set, partition))
		outcome = FIT_WIDENED;
	else if (!tpcset_is_subset(set, theirs))
		outcome = FIT_IN_PARTITION;
	return outcome;
}

enum fit_outcome fit_find(const struct gpu *gpu, CUfunction function, const struct qmd_shape *shape, const void *qmd,
                          struct qmd_mask *disable)
{
	struct qmd_mask own = qmd_own_mask(gpu->family, qmd);
	struct tpcset theirs = enabled_in(gpu->topology, &own), partition = enabled_in(gpu->topology, disable);
	struct tpcset set = tpcset_and(&theirs, &partition);
	struct fit fit = {
		.topology = gpu->topology,
		.shape = *shape,
		.blocks_per_sm = blocks_per_sm(function, shape),
	};
	bool more = true;

	fit.possible = find_possible(&fit, &theirs);
	if (!fits(&fit, &set))
		set = tpcset_and(&partition, &fit.possible);
	while (more && !fits(&fit, &set))
		more = add_group(&fit, &set);
	/* The driver knows a place for it that our topology does not have. */
	if (tpcset_is_empty(&set))
		set = partition;
	topology_disable_mask(gpu->topology, &set, disable->words, QMD_MASK_BITS);
	return outcome_of(&set, &partition, &theirs);
}
