/* What our thread sees of the program's kernels: what counts say of the whole process (driver/releases.h). */
#ifndef NVTASKSET_SHIM_SIGHT_H
#define NVTASKSET_SHIM_SIGHT_H

#include "state/counts.h"

#include <stdbool.h>
#include <stdint.h>

struct sight {
	uint64_t ended;  /* so many kernels */
	bool is_counted; /* when kernels end, this is seen */
	bool wants;      /* it wants to run: it has work in flight; true where that is not known */
	/* The GPUs on which it has launched anything. */
	unsigned int gpu_count;
	struct sight_gpu {
		struct pci_address pci;
		bool wants;    /* to run there; false where that is not known: nobody waits for what may not be */
		bool may_want; /* true where that is not known */
	} gpus[COUNTS_GPUS];
};

/* One thread at a time. */
struct sight sight_see(void);

#endif
