/*
 * Launches kernels in this process through our library, and reports the SMs on which their blocks ran. Initialises
 * CUDA: for a process with no other work (measure.c).
 *
 * Our library gets a topology with a TPC for each mask bit: a partition is a set of mask bits. All functions return 0,
 * or -1 with the reason.
 */
#pragma once

#include "base/error.h"
#include "driver/cuda.h"
#include "gpu/topology/measured.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "state/segment/segment.h"

/* Enough blocks for every SM: a block has the largest size for all GPUs, and runs for some time; one or two fit
 * an SM. */
#define LAUNCHER_BLOCKS_MAX (4 * MEASURED_SMS_MAX)

struct launcher {
	const struct topology *gpu; /* with a TPC for each bit */
	struct segment segment;     /* this process's own */
	unsigned int sm_count;
	CUcontext context;
	CUfunction where;
	CUdeviceptr output;
};

/* Loads our library from the file `library` and initialises CUDA. To be called once in a process. Fills `gpus` with
 * CUDA's GPUs, sorted by PCI address, with a TPC for each mask bit; our library reads the same from a memfd. */
int launcher_start(const char *library, struct topology_list *gpus, struct error *error);

/* Makes a context on a GPU of the list, until the process ends. */
int launcher_open(struct launcher *launcher, const struct topology *gpu, struct error *error);

/* Enables only these mask bits for the next launches. One bit must stand for a TPC: else a launch would never
 * finish. */
int launcher_enable(struct launcher *launcher, const struct tpcset *bits, struct error *error);

/* Launches once, in clusters of `cluster` blocks (0: without clusters). Returns in `sms` the SM of each of the `count`
 * blocks; the blocks of a cluster are adjacent. `count` is 0 if the GPU has no clusters of this size. */
int launcher_run(struct launcher *launcher, unsigned int cluster, uint32_t sms[LAUNCHER_BLOCKS_MAX],
                 unsigned int *count, struct error *error);

/* Fails if our library could not restrict a launch as asked. */
int launcher_check(struct launcher *launcher, struct error *error);
