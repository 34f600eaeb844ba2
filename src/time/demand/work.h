/* What this process has in flight on each of its GPUs, as its own counts say (driver/releases.h). */
#ifndef NVTASKSET_TIME_DEMAND_WORK_H
#define NVTASKSET_TIME_DEMAND_WORK_H

#include "demand.h"
#include "gpu/pci_address.h"
#include "state/kernels/counts_read.h"

#include <stdbool.h>
#include <stdint.h>

struct work {
	uint64_t ended;            /* so many kernels */
	bool is_counted;           /* it is seen when kernels end */
	bool wants;                /* something is in flight; true where that is not known */
	bool pauses, is_present;   /* demand.h; of the GPU with most of it */
	unsigned int gpus_wanting; /* on so many, something may be in flight */
	unsigned int gpu_count;    /* on which it has made a context */
	struct work_on_gpu {
		struct pci_address pci;
		struct demand demand;
	} gpus[COUNTS_GPUS];
};

/* Looks at `now`; `work` is what the last look saw, or all zero. One thread at a time. */
void work_look(struct work *work, uint64_t now);

#endif
