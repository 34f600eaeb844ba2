/* One GPU, and its TPCs that nobody else has. */
#ifndef NVTASKSET_TUNING_ROOM_H
#define NVTASKSET_TUNING_ROOM_H

#include "base/pids.h"
#include "cli/options.h"
#include "state/segment/segment.h"

struct room {
	const struct options *options;
	struct topology_list list;
	const struct topology *gpu;
	char name[PCI_ADDRESS_TEXT]; /* as -G has it */
	struct tpcset taken;         /* by others */
};

/* The GPU that the options name, or the partition, or else CUDA's first. -1 with the reason. */
int room_open(struct room *room, const struct options *options, const struct segment_revision *partition, struct error *error);

/* Finds out what others have: all but these. -1 with the reason. */
int room_look(struct room *room, const struct pids *ours, struct error *error);

unsigned int room_count(const struct room *room);

/* So many TPCs, as -n would choose them. -1 with the reason. */
int room_choose(const struct room *room, unsigned int tpcs, struct segment_partition *place, struct error *error);

#endif
