/*
 * Where a launch may run inside a partition, blocks that must run at once being given the room that they need: what
 * src/shim/residency.h says, said again.
 */
#ifndef TESTS_ROOM_H
#define TESTS_ROOM_H

#include "gpu/topology/topology.h"

/* Either in clusters or cooperative, or neither. */
struct shape {
	unsigned int blocks;
	unsigned int threads; /* of a block */
	unsigned int cluster; /* blocks of a cluster; 0: none */
	bool is_cooperative;
	unsigned int blocks_per_sm; /* how many an SM holds, for a cooperative launch */
};

/* The set, widened by virtual GPCs until it has room. The whole GPU must have room. */
struct tpcset room_for(const struct topology *gpu, const struct shape *shape, struct tpcset set);

#endif
