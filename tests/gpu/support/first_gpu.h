/* For tests of one GPU: the first one. */
#ifndef TESTS_FIRST_GPU_H
#define TESTS_FIRST_GPU_H

#include "gpu.h"

extern struct gpu_under_test gpu;

/* Opens it. For cmocka. */
int gpu_set_up(void **state);

/* The first virtual GPC with at least so many TPCs; and so many TPCs of one. */
unsigned int gpu_gpc_with(unsigned int tpcs);
struct tpcset gpu_some_of_gpc(unsigned int virtual_gpc, unsigned int count);

/* A launch on the null stream runs on these TPCs. */
void gpu_assert_inside(struct tpcset set);

/* Skips the test if the GPU has no clusters. */
void gpu_need_clusters(void);

#endif
