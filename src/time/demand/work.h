/* The work in flight of this process on each GPU, by the counts of the process (driver/releases.h). */
#ifndef NVTASKSET_TIME_DEMAND_WORK_H
#define NVTASKSET_TIME_DEMAND_WORK_H

#include "demand.h"
#include "gpu/pci_address.h"
#include "state/kernels/counts_read.h"
#include "time/rules/rivals.h"

#include <stdbool.h>
#include <stdint.h>

struct work {
	uint64_t ended;         /* kernels */
	bool is_counted;        /* the ends of kernels are seen */
	struct rules_view view; /* wants if unknown; pauses and is present as on the GPU with most work */
	unsigned int gpu_count; /* GPUs with a context */
	struct work_on_gpu {
		struct pci_address pci;
		struct demand demand;
	} gpus[COUNTS_GPUS];
};

/* Looks at `now`; `work` is the result of the last look, or all zero. One thread at a time. */
void work_look(struct work *work, uint64_t now);

#endif
