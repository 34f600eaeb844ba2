/*
 * Which TPCs can hold a launch whose blocks must run at once: a cluster, or a cooperative grid. Without asking anybody: from
 * the GPU's topology and from how many blocks an SM holds.
 */
#ifndef NVTASKSET_OCCUPANCY_H
#define NVTASKSET_OCCUPANCY_H

#include "qmd.h"
#include "topology/topology.h"
#include "tpcset.h"

#include <stdbool.h>

struct occupancy {
	const struct topology *topology;
	struct qmd_shape shape;
	unsigned int blocks_per_sm; /* 1 or more */
	struct tpcset possible;     /* TPCs on which its blocks can run at all */
};

/* `judged`: TPCs on which the driver thinks that the launch can run. They count where the topology does not say in which
 * groups clusters are placed. */
struct occupancy occupancy_of(const struct topology *topology, const struct qmd_shape *shape, unsigned int blocks_per_sm,
                              const struct tpcset *judged);

/* Whether these TPCs hold all blocks that must run at once. */
bool occupancy_fits(const struct occupancy *need, const struct tpcset *set);

/* The TPCs that the launch can have of `allowed`: those in `preferred` where they hold it; all that can be of use where these
 * do not; and where all of `allowed` does not hold it, the fewest more that do, a whole group at a time. */
struct tpcset occupancy_find_room(const struct occupancy *need, const struct tpcset *allowed, const struct tpcset *preferred);

#endif
