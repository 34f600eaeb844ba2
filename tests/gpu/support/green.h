/* A green context: its kernels have a mask of the driver's own (facts.md, "Launch descriptors"). */
#ifndef TESTS_GREEN_H
#define TESTS_GREEN_H

#include "first_gpu.h"

#define GREEN_SMS 16

struct green {
	CUgreenCtx context;           /* NULL if there is none */
	struct gpu_under_test inside; /* the same GPU, in the green context */
	struct tpcset tpcs;           /* its TPCs */
};

/* There is one at a time. */
extern struct green green;

/* Makes it, current to this thread, and finds its TPCs; the partition must be the whole GPU. Skips the test if the
 * driver has no green contexts. */
void green_enter(void);

/* Leaves it, unless it was not entered or has been left already. For cmocka. */
int green_leave(void **state);

/* Only makes one of GREEN_SMS SMs on the first GPU. */
CUresult green_make(CUgreenCtx *made);

#endif
