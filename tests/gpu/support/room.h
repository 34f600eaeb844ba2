/*
 * Where a launch may run inside a partition if blocks that must run at once get the room that they need: a second
 * implementation of src/launch/space/residency.h.
 */
#ifndef TESTS_ROOM_H
#define TESTS_ROOM_H

#include "gpu.h"

/* A launch: in clusters, or cooperative, or neither. */
struct shape {
	unsigned int blocks;
	unsigned int threads; /* of a block */
	unsigned int cluster; /* blocks of a cluster; 0: none */
	bool is_cooperative;
	unsigned int blocks_per_sm; /* how many an SM holds, for a cooperative launch */
};

/* Only launches `where`. */
CUresult shape_launch(const struct gpu_under_test *gpu, const struct shape *shape, CUstream stream, CUdeviceptr output);

/* The set, widened by virtual GPCs until it has room: for a cluster, first by those that it has a part of. The whole GPU must have room. */
struct tpcset room_for(const struct topology *gpu, const struct shape *shape, struct tpcset set);

#endif
