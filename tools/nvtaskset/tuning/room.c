#include "room.h"

#include "select/set.h"
#include "select/targets.h"

#include <stdio.h>

int room_open(struct room *room, const struct options *options, const struct segment_revision *partition, struct error *error)
{
	room->options = options;
	if (topology_load(&room->list, error) < 0 || target_gpus(&room->chosen, options, &room->list, partition, error) < 0)
		return -1;
	const struct topology *gpu = room->chosen.choices[0].gpu;

	gpus_label(gpu->pci, &room->list, room->gpu);
	room->whole = (struct segment_revision){.count = 1, .partitions = {{.pci = gpu->pci, .set = topology_all(gpu)}}};
	return room->chosen.count == 1 ? 0 : error_set(error, "one GPU at a time (-G)");
}

int room_choose(const struct room *room, unsigned int tpcs, struct segment_revision *wanted, struct error *error)
{
	struct options options = *room->options;
	const struct set_limits limits = {.except = &room->pids, .taken = &room->taken};
	char count[16];

	snprintf(count, sizeof count, "%u", tpcs);
	options.notation = NOTATION_COUNT;
	options.set = count;
	options.dry_run = true;
	return set_find(wanted, &options, &room->chosen, &room->list, &limits, error);
}

unsigned int room_count(const struct room *room, struct error *error)
{
	struct segment_revision unused;
	unsigned int count = 0, high = room->chosen.choices[0].gpu->tpc_count;

	while (count < high) {
		unsigned int middle = (count + high + 1) / 2;

		if (room_choose(room, middle, &unused, error) == 0)
			count = middle;
		else
			high = middle - 1;
	}
	return count;
}
