/* For tests of one GPU: the first one. */
#ifndef TESTS_FIRST_GPU_H
#define TESTS_FIRST_GPU_H

#include "gpu.h"

extern struct gpu_under_test gpu;

/* Opens it. For cmocka. */
int gpu_set_up(void **state);

/* Skips the test if the GPU has no clusters. */
void gpu_need_clusters(void);

#endif
