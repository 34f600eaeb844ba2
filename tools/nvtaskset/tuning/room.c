#include "room.h"

#include "select/set.h"
#include "select/targets.h"

int room_open(struct room *room, const struct options *options, const struct segment_revision *partition, struct error *error)
{
	struct gpu_choices chosen;

	room->options = options;
	if (topology_load(&room->list, error) < 0 || target_gpus(&chosen, options, &room->list, partition, error) < 0)
		return -1;
	room->gpu = chosen.choices[0].gpu;
	gpus_label(room->gpu->pci, &room->list, room->name);
	return chosen.count == 1 ? 0 : error_set(error, "one GPU at a time (-G)");
}

int room_look(struct room *room, const struct pids *ours, struct error *error)
{
	return set_find_taken(&room->taken, room->gpu, &room->list, ours, error);
}

unsigned int room_count(const struct room *room)
{
	struct tpcset all = topology_all(room->gpu), left = tpcset_without(&all, &room->taken);

	return tpcset_count(&left);
}

int room_choose(const struct room *room, unsigned int tpcs, struct segment_partition *place, struct error *error)
{
	place->pci = room->gpu->pci;
	return select_tpcs(&place->set, room->gpu, &room->taken, tpcs, room->options->strategy, error);
}
