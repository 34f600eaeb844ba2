/*
 * Launches kernels in this very process, behind our library, and says on which SMs they ran while which mask bits were
 * enabled. For a process that does nothing else (measure_child.h): it initialises CUDA.
 *
 * A GPU is described to our library by a topology in which every mask bit is a TPC of its own, so that a partition is a
 * set of bits. Everything returns 0, or -1 with the reason.
 */
#ifndef NVTASKSET_LAUNCHER_H
#define NVTASKSET_LAUNCHER_H

#include "base/error.h"
#include "driver/cuda.h"
#include "gpu/topology/measured.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "state/segment.h"

#include <stdint.h>

/* So many blocks reach every SM: they are of the largest size there is everywhere, of which one or two fit an SM, and
 * stay for a while. */
#define LAUNCHER_BLOCKS_MAX (4 * MEASURED_SMS_MAX)

struct launcher {
	const struct topology *gpu; /* with a TPC for each bit */
	struct segment segment;     /* this process's own */
	unsigned int sm_count;
	CUcontext context;
	CUfunction where;
	CUdeviceptr output;
};

/* Opens our library and initialises CUDA, once a process: `gpus` are those that CUDA has, with a TPC for each mask bit,
 * by PCI address. Our library finds them in a file in memory. */
int launcher_start(const char *library, struct topology_list *gpus, struct error *error);

/* Makes a context on a GPU of that list. A process ends without closing it. */
int launcher_open(struct launcher *launcher, const struct topology *gpu, struct error *error);

/* Enables these mask bits and no other, for the launches to come. Never none that stands for a TPC: such a launch would
 * never finish. */
int launcher_enable(struct launcher *launcher, const struct tpcset *bits, struct error *error);

/* The SMs of the blocks of one launch, in clusters of `cluster` (0: no clusters), one cluster behind the other. `count`
 * is 0 where the GPU has no clusters of this size. */
int launcher_run(struct launcher *launcher, unsigned int cluster, uint32_t sms[LAUNCHER_BLOCKS_MAX],
                 unsigned int *count, struct error *error);

/* Fails where our library had to let a launch of this process run outside its partition. */
int launcher_check(struct launcher *launcher, struct error *error);

#endif
