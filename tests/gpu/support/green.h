/* A green context: its kernels come with a mask of the driver's own (docs/facts.md, "Launch descriptors"). */
#ifndef TESTS_GREEN_H
#define TESTS_GREEN_H

#include "first_gpu.h"

#define GREEN_SMS 16

struct green {
	CUgreenCtx context;           /* NULL where there is none */
	struct gpu_under_test inside; /* the same GPU, in the green context */
	struct tpcset tpcs;           /* where it lies */
};

/* One at a time. */
extern struct green green;

/* Makes it, current to this thread, and finds out where it lies: the partition is the whole GPU then. Skips the test where
 * the driver has none. */
void green_enter(void);

/* For cmocka; it may have been left already, or not been entered. */
int green_leave(void **state);

/* A test that leaves it, whatever becomes of that. */
#define IN_GREEN(test) cmocka_unit_test_teardown(test, green_leave)

/* A stream of it. */
CUstream green_stream(void);

#endif
