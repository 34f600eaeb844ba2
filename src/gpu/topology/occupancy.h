/*
 * The TPCs for a launch whose blocks must run at once: a cluster, or a cooperative grid. Computed from the GPU's
 * topology and the number of blocks per SM, without calling the driver.
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
	struct tpcset possible;     /* TPCs on which the blocks can run at all */
};

/* `judged`: the TPCs on which the driver thinks that the launch can run, for topologies with unknown virtual GPCs. */
struct occupancy occupancy_of(const struct topology *topology, const struct qmd_shape *shape,
                              unsigned int blocks_per_sm, const struct tpcset *judged);

/* Whether the set has room for all blocks that must run at once. */
bool occupancy_fits(const struct occupancy *need, const struct tpcset *set);

/* The TPCs for the launch: the TPCs of `allowed` in `preferred`, if there is room; otherwise all usable TPCs of
 * `allowed`. If there is no room either, whole groups beyond `allowed` are added: for a cluster, all groups with a part
 * in `allowed`; then group by group, each time the group with the fewest missing TPCs. */
struct tpcset occupancy_find_room(const struct occupancy *need, const struct tpcset *allowed,
                                  const struct tpcset *preferred);

#endif
