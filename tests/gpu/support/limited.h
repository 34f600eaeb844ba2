/* For tests of memory: a limit of this process, and what counts. A failure fails the running cmocka test. */
#ifndef TESTS_LIMITED_H
#define TESTS_LIMITED_H

#include "gpu.h"

#define MIB ((size_t)1 << 20)

/* A limit of each GPU. */
void limited_to(uint64_t bytes);

/* Bytes as the program sees free memory, on the GPU of the current context. */
size_t limited_free(void);

/* Bytes as viewers see used memory. */
uint64_t limited_in_use(const struct gpu_under_test *gpu);

#endif
