/*
 * Which TPCs can hold a launch whose blocks must run at once: a cluster, or a cooperative grid. Computed from the
 * GPU's topology and the number of blocks that an SM holds, without calling the driver.
 */
#ifndef NVTASKSET_TOPOLOGY_OCCUPANCY_H
#define NVTASKSET_TOPOLOGY_OCCUPANCY_H

#include "gpu/qmd.h"
#include "gpu/tpcset.h"
#include "topology.h"

#include <stdbool.h>

struct occupancy {
	const struct topology *topology;
	struct qmd_shape shape;
	unsigned int blocks_per_sm; /* 1 or more */
	struct tpcset possible;     /* TPCs on which its blocks can run at all */
};

/* `judged` are the TPCs on which the driver thinks that the launch can run. They are used if the topology does not know
 * the groups in which clusters are placed. */
struct occupancy occupancy_of(const struct topology *topology, const struct qmd_shape *shape, unsigned int blocks_per_sm,
                              const struct tpcset *judged);

/* Whether these TPCs hold all blocks that must run at once. */
bool occupancy_fits(const struct occupancy *need, const struct tpcset *set);

/* The TPCs that the launch gets: those of `allowed` that are also in `preferred`, if they hold it; otherwise all of
 * `allowed` that it can use. If these do not hold it either, whole groups beyond `allowed` are added: for a cluster, all that
 * `allowed` has a part of; then one after the other, each time the one of which the fewest TPCs are missing. */
struct tpcset occupancy_find_room(const struct occupancy *need, const struct tpcset *allowed, const struct tpcset *preferred);

#endif
