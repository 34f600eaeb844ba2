#include "scheduler.h"

#include "context.h"
#include "launch.h"

/* --- room ------------------------------------------------------------------------------------------- */

static void add_sms(struct schedule *schedule, const struct topology *gpu, unsigned int tpc)
{
	for (unsigned int sm = 0; sm < gpu->sms_per_tpc; sm++)
		schedule->sms[schedule->sm_count++] = (uint16_t)(tpc * gpu->sms_per_tpc + sm);
}

static void add_group(struct schedule *schedule, const struct tpcset *group, const struct tpcset *enabled, unsigned int size)
{
	const struct topology *gpu = schedule->launch->context->gpu;
	struct tpcset usable = tpcset_and(group, enabled);
	unsigned int first = schedule->sm_count;

	for (unsigned int tpc = tpcset_next(&usable, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&usable, tpc + 1))
		add_sms(schedule, gpu, tpc);
	unsigned int count = schedule->sm_count - first;

	if (count >= size) {
		schedule->groups[schedule->group_count].first = (uint16_t)first;
		schedule->groups[schedule->group_count].count = (uint16_t)count;
		schedule->group_count++;
		schedule->clusters_at_once += count / size * schedule->blocks_per_sm;
	}
}

/* Groups in which clusters of `size` blocks fit. A singleton is alone in its virtual GPC, so it needs no rule of its own. */
static void add_groups(struct schedule *schedule, const struct tpcset *enabled, unsigned int size)
{
	const struct topology *gpu = schedule->launch->context->gpu;
	struct tpcset left = *enabled;

	for (unsigned int tpc = tpcset_next(&left, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&left, 0)) {
		struct tpcset group = topology_virtual_gpc(gpu, gpu->tpcs[tpc].virtual_gpc);

		add_group(schedule, &group, enabled, size);
		tpcset_remove(&left, tpc);
		left = tpcset_without(&left, &group);
	}
}

void schedule_prepare(struct schedule *schedule, const struct launch *launch, const struct tpcset *enabled)
{
	const struct topology *gpu = launch->context->gpu;
	unsigned int size = launch_cluster_size(launch);

	*schedule = (struct schedule){
		.launch = launch, .blocks_per_sm = occupancy_blocks(gpu, launch_threads(launch), launch->shared_bytes),
	};
	if (size > 0) {
		add_groups(schedule, enabled, size);
	} else {
		for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
			if (tpcset_has(enabled, tpc))
				add_sms(schedule, gpu, tpc);
	}
}

const char *schedule_verdict(const struct schedule *schedule)
{
	unsigned int size = launch_cluster_size(schedule->launch);
	size_t blocks = launch_blocks(schedule->launch);
	size_t at_once = size > 0 ? (size_t)schedule->clusters_at_once * size
	                          : (size_t)schedule->sm_count * schedule->blocks_per_sm;
	const char *why = NULL;

	if (schedule->sm_count == 0)
		why = "no TPC of this GPU is enabled";
	else if (size > 0 && schedule->group_count == 0)
		why = "no virtual GPC has enough enabled SMs for one cluster";
	else if (schedule->launch->cooperative && blocks > at_once)
		why = "the enabled SMs cannot hold all blocks of a cooperative launch at once";
	return why;
}

/* --- placing ---------------------------------------------------------------------------------------- */

/* Clusters go round the groups, and in each group round its SMs. */
static unsigned int sm_in_cluster(const struct schedule *schedule, size_t block)
{
	const struct dimensions *grid = &schedule->launch->grid;
	const struct dimensions *cluster = &schedule->launch->cluster;
	size_t x = block % grid->x, y = block / grid->x % grid->y, z = block / grid->x / grid->y;
	size_t row = grid->x / cluster->x, column = grid->y / cluster->y;
	size_t number = x / cluster->x + row * (y / cluster->y + column * (z / cluster->z));
	size_t rank = x % cluster->x + cluster->x * (y % cluster->y + cluster->y * (z % cluster->z));
	size_t group = number % schedule->group_count;
	size_t start = number / schedule->group_count * launch_cluster_size(schedule->launch);
	size_t position = (start + rank) % schedule->groups[group].count;

	return schedule->sms[schedule->groups[group].first + position];
}

unsigned int schedule_sm(const struct schedule *schedule, size_t block)
{
	return launch_cluster_size(schedule->launch) > 0 ? sm_in_cluster(schedule, block)
	                                                 : schedule->sms[block % schedule->sm_count];
}
