/* A green context: its kernels come with a mask of the driver's own (docs/facts.md, "Launch descriptors"). */
#ifndef TESTS_GREEN_H
#define TESTS_GREEN_H

#include "gpu.h"

#define GREEN_SMS 16

struct green {
	CUgreenCtx context;           /* NULL where there is none */
	struct gpu_under_test inside; /* the same GPU, in the green context */
	struct tpcset tpcs;           /* where it lies */
};

/* Makes one, current to this thread, and finds out where it lies: the partition is the whole GPU then. Skips the test where
 * the driver has none. */
void green_enter(struct green *green, const struct gpu_under_test *gpu);

/* One that was left already may be left again. */
void green_leave(struct green *green);

/* A stream of it. */
CUstream green_stream(const struct green *green);

#endif
