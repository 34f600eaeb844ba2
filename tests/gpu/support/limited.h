/* For tests of memory: a limit of this process, and what counts. Each fails the running cmocka test if it fails. */
#ifndef TESTS_LIMITED_H
#define TESTS_LIMITED_H

#include "gpu.h"

#define MIB ((size_t)1 << 20)

/* Of each GPU. */
void limited_to(uint64_t bytes);

/* As the program sees it, on the GPU of the current context. */
size_t limited_free(void);

/* As viewers see it. */
uint64_t limited_in_use(const struct gpu_under_test *gpu);

#endif
