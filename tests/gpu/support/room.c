#include "room.h"

CUresult shape_launch(const struct gpu_under_test *gpu, const struct shape *shape, CUstream stream, CUdeviceptr output)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&output, &cycles};
	CUlaunchAttribute attributes[] = {
		{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = shape->is_cooperative},
		{.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {shape->cluster, 1, 1}},
	};
	CUlaunchConfig config = gpu_config(shape->blocks, shape->threads, stream);

	config.attrs = attributes;
	config.numAttrs = shape->cluster > 0 ? 2 : 1;
	return cuLaunchKernelEx(&config, gpu->where, parameters, NULL);
}

/* All TPCs, where there are no virtual GPCs. */
static struct tpcset members_of(const struct topology *gpu, unsigned int tpc)
{
	unsigned int group = gpu->tpcs[tpc].virtual_gpc;

	return group == TOPOLOGY_UNKNOWN ? topology_all(gpu) : topology_virtual_gpc(gpu, group);
}

static bool holds_cluster(const struct topology *gpu, const struct shape *shape, const struct tpcset *group)
{
	return tpcset_count(group) * gpu->sms_per_tpc >= shape->cluster;
}

/* Whether a cluster has room in one virtual GPC. */
static bool has_room_for_cluster(const struct topology *gpu, const struct shape *shape, const struct tpcset *set)
{
	bool found = false;

	for (unsigned int tpc = tpcset_next(set, 0); tpc < TPCSET_MAX && !found; tpc = tpcset_next(set, tpc + 1)) {
		struct tpcset group = members_of(gpu, tpc);
		struct tpcset usable = tpcset_and(&group, set);

		found = holds_cluster(gpu, shape, &usable);
	}
	return found;
}

static bool has_room(const struct topology *gpu, const struct shape *shape, const struct tpcset *set)
{
	bool room = true;

	if (shape->is_cooperative)
		room = tpcset_count(set) * gpu->sms_per_tpc * shape->blocks_per_sm >= shape->blocks;
	else if (shape->cluster > 0)
		room = has_room_for_cluster(gpu, shape, set);
	return room;
}

/* The set with one more virtual GPC: of those that help, the one with the fewest missing TPCs. */
static struct tpcset widened_by_one(const struct topology *gpu, const struct shape *shape, const struct tpcset *set)
{
	struct tpcset best = {{0}};
	unsigned int fewest = TPCSET_MAX;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		struct tpcset group = members_of(gpu, tpc);
		struct tpcset missing = tpcset_without(&group, set);
		unsigned int count = tpcset_count(&missing);

		if (count > 0 && count < fewest && holds_cluster(gpu, shape, &group)) {
			best = missing;
			fewest = count;
		}
	}
	return tpcset_or(set, &best);
}

/* The set with all of the virtual GPCs that it has a part of and that hold a cluster. */
static struct tpcset with_own(const struct topology *gpu, const struct shape *shape, const struct tpcset *set)
{
	struct tpcset all = *set;

	for (unsigned int tpc = tpcset_next(set, 0); tpc < TPCSET_MAX; tpc = tpcset_next(set, tpc + 1)) {
		struct tpcset group = members_of(gpu, tpc);

		if (holds_cluster(gpu, shape, &group))
			all = tpcset_or(&all, &group);
	}
	return all;
}

struct tpcset room_for(const struct topology *gpu, const struct shape *shape, struct tpcset set)
{
	if (!shape->is_cooperative && shape->cluster > 0 && !has_room(gpu, shape, &set))
		set = with_own(gpu, shape, &set);
	while (!has_room(gpu, shape, &set))
		set = widened_by_one(gpu, shape, &set);
	return set;
}
