#include "residency.h"

#include "driver/functions.h"

/* What a launch needs, and where it can have it. */
struct need {
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

static bool holds_cluster(const struct need *need, const struct tpcset *group)
{
	return tpcset_count(group) * need->topology->sms_per_tpc >= need->shape.cluster;
}

/* Where clusters find room: not known, only what the driver has judged is sure. */
static bool knows_groups(const struct need *need)
{
	return need->shape.cluster <= 1 || need->topology->tpcs[0].virtual_gpc != TOPOLOGY_UNKNOWN;
}

/* Of the whole GPU. `theirs` is what the driver's own mask leaves. */
static struct tpcset find_possible(const struct need *need, const struct tpcset *theirs)
{
	struct tpcset all = topology_all(need->topology), possible = {{0}};

	if (!knows_groups(need))
		return *theirs;
	for (unsigned int tpc = tpcset_next(&all, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&all, tpc + 1)) {
		struct tpcset group = topology_cluster_group(need->topology, &all, tpc);

		if (holds_cluster(need, &group))
			tpcset_add(&possible, tpc);
	}
	return possible;
}

/* Clusters run in groups that can hold one; whatever lies elsewhere does not count. */
static bool fits(const struct need *need, const struct tpcset *set)
{
	struct tpcset usable = tpcset_and(set, &need->possible), seen = {{0}};
	unsigned int blocks = 0;
	bool any = false;

	if (!knows_groups(need))
		return tpcset_equal(&usable, &need->possible);
	for (unsigned int tpc = tpcset_next(&usable, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&usable, tpc + 1)) {
		struct tpcset group = topology_cluster_group(need->topology, &usable, tpc);

		if (!tpcset_has(&seen, tpc) && (need->shape.cluster <= 1 || holds_cluster(need, &group))) {
			unsigned int sms = tpcset_count(&group) * need->topology->sms_per_tpc;

			blocks += sms / need->shape.cluster * need->shape.cluster * need->blocks_per_sm;
			any = true;
		}
		seen = tpcset_or(&seen, &group);
	}
	return any && blocks >= need->shape.cooperative;
}

/* The group that helps most for the fewest TPCs: one that can hold a cluster when whole, of which the set has most
 * already. False where there is none left. */
static bool add_group(const struct need *need, struct tpcset *set)
{
	struct tpcset best = {{0}};
	unsigned int best_missing = TPCSET_MAX;

	for (unsigned int tpc = tpcset_next(&need->possible, 0); tpc < TPCSET_MAX;
	     tpc = tpcset_next(&need->possible, tpc + 1)) {
		struct tpcset group = topology_cluster_group(need->topology, &need->possible, tpc);
		struct tpcset missing = tpcset_without(&group, set);
		unsigned int count = tpcset_count(&missing);

		if (count > 0 && count < best_missing && holds_cluster(need, &group)) {
			best = missing;
			best_missing = count;
		}
	}
	*set = tpcset_or(set, &best);
	return best_missing < TPCSET_MAX;
}

bool residency_holds(const struct gpu *gpu, const struct launch_request *request, const struct tpcset *set)
{
	const struct need need = {
		.topology = gpu->topology,
		.shape = request->shape,
		.blocks_per_sm = blocks_per_sm(request->function, &request->shape),
		.possible = topology_all(gpu->topology),
	};

	return fits(&need, set);
}

/* --- deciding --------------------------------------------------------------------------------------------------- */

/* Of its shared memory, a shape has here what the launch adds to the function's own; the descriptor has both in one. */
static struct qmd_shape shape_in_descriptor(const struct launch *launch)
{
	struct qmd_shape shape = qmd_shape_of(launch->gpu->family, launch->qmd);
	int fixed = 0;

	if (driver.function_get_attribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, launch->function) != CUDA_SUCCESS)
		fixed = 0;
	shape.shared_bytes -= shape.shared_bytes > (unsigned int)fixed ? (unsigned int)fixed : shape.shared_bytes;
	return shape;
}

/* What the launch can have of `allowed`, and more where that does not hold it. The driver let it pass, so it fits into the
 * whole GPU. */
static struct tpcset find_room(const struct need *need, const struct tpcset *allowed, const struct tpcset *theirs)
{
	struct tpcset set = tpcset_and(theirs, allowed);
	bool more = true;

	if (!fits(need, &set))
		set = tpcset_and(allowed, &need->possible);
	while (more && !fits(need, &set))
		more = add_group(need, &set);
	/* The driver knows a place for it that our topology does not have. */
	return tpcset_is_empty(&set) ? *allowed : set;
}

/* By where it lies, and not by how it was found: what we take for too little may be all that there is. */
static void note_where(const struct tpcset *set, const struct tpcset *theirs, struct decision *decision)
{
	if (!tpcset_is_subset(set, &decision->partition))
		decision_note(decision, SEGMENT_WIDENED);
	else if (!tpcset_is_subset(set, &decision->set))
		decision_note(decision, SEGMENT_OWN_MASK);
	if (tpcset_is_subset(set, &decision->partition) && !tpcset_is_subset(set, theirs))
		decision_note(decision, SEGMENT_GREEN_CONTEXT);
}

/* A launch that a mask of the program's own cannot hold has all of the partition, first of all. */
static void give_room(const struct launch *launch, const struct qmd_shape *shape, struct decision *decision)
{
	const struct gpu *gpu = launch->gpu;
	struct qmd_mask own = qmd_own_mask(gpu->family, launch->qmd);
	struct tpcset theirs = enabled_in(gpu->topology, &own);
	struct need need = {
		.topology = gpu->topology,
		.shape = *shape,
		.blocks_per_sm = blocks_per_sm(launch->function, shape),
	};

	need.possible = find_possible(&need, &theirs);
	struct tpcset set = find_room(&need, &decision->set, &theirs);

	if (!tpcset_is_subset(&set, &decision->set))
		set = find_room(&need, &decision->partition, &theirs);
	note_where(&set, &theirs, decision);
	decision_restrict(decision, gpu->topology, &set);
	decision->is_exact = true;
}

/* Before Hopper the descriptor does not say that its blocks must run at once; where it does, that is more exact than what
 * the call said. */
void residency_decide(const struct launch *launch, struct decision *decision)
{
	if (decision->state != DECISION_RESTRICTED)
		return;
	if (!qmd_tells_what_must_fit(launch->gpu->family)) {
		if (launch->origin.shape.cooperative > 0)
			give_room(launch, &launch->origin.shape, decision);
	} else if (qmd_must_fit(launch->gpu->family, launch->qmd)) {
		const struct qmd_shape shape = shape_in_descriptor(launch);

		give_room(launch, &shape, decision);
	}
}
