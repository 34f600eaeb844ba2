/* What this process has in flight on each of its GPUs, as its own counts say (driver/releases.h). */
#ifndef NVTASKSET_TIME_DEMAND_WORK_H
#define NVTASKSET_TIME_DEMAND_WORK_H

#include "demand.h"
#include "gpu/pci_address.h"
#include "state/kernels/counts_read.h"
#include "time/rules/rivals.h"

#include <stdbool.h>
#include <stdint.h>

struct work {
	uint64_t ended;         /* so many kernels */
	bool is_counted;        /* it is seen when kernels end */
	struct rules_view view; /* wants where nothing is known; pauses and is present as on the GPU with most work */
	unsigned int gpu_count; /* on which it has made a context */
	struct work_on_gpu {
		struct pci_address pci;
		struct demand demand;
	} gpus[COUNTS_GPUS];
};

/* Looks at `now`; `work` is what the last look saw, or all zero. One thread at a time. */
void work_look(struct work *work, uint64_t now);

#endif
