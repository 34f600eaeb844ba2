/* What our thread sees of the program's kernels: what counts say of the whole process (driver/releases.h). */
#ifndef NVTASKSET_SHIM_SIGHT_H
#define NVTASKSET_SHIM_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

struct sight {
	uint64_t ended;  /* so many kernels */
	bool is_counted; /* when kernels end, this is seen */
	bool wants;      /* it wants to run: it has work in flight; true where that is not known */
};

/* One thread at a time. */
struct sight sight_see(void);

#endif
