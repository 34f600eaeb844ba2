/* One GPU, and its TPCs that nobody else has. */
#ifndef NVTASKSET_TUNING_ROOM_H
#define NVTASKSET_TUNING_ROOM_H

#include "base/pids.h"
#include "cli/gpus.h"
#include "cli/options.h"
#include "state/segment/segment.h"

struct room {
	const struct options *options;
	struct topology_list list;
	struct gpu_choices chosen;     /* the one GPU, */
	char gpu[PCI_ADDRESS_TEXT];    /* as -G names it, */
	struct segment_revision whole; /* and with all of its TPCs */
	struct pids pids;              /* the TPCs of these programs count as free; the caller frees the list */
	struct segment_revision taken; /* and these do not */
};

/* The GPU that the options name, or the partition, or else CUDA's first. -1 with the reason. */
int room_open(struct room *room, const struct options *options, const struct segment_revision *partition, struct error *error);

/* As -n would choose, but without holding up others who choose. -1 with the reason. */
int room_choose(const struct room *room, unsigned int tpcs, struct segment_revision *wanted, struct error *error);

/* How many there are; 0 with the reason. */
unsigned int room_count(const struct room *room, struct error *error);

#endif
