/*
 * Modules whose kernels may launch kernels. Such launches are not announced, and run on the whole GPU; under MPS they do
 * not run at all (FACTS 7). All that can be done is to see that they may come.
 */
#ifndef NVTASKSET_DRIVER_MODULES_H
#define NVTASKSET_DRIVER_MODULES_H

#include "segment.h"

#include <stddef.h>

/* Before any module comes. */
void modules_use(const struct segment *segment);

/* The code of a module is loaded. Where kernels in it may launch kernels, that is counted, and said the first time;
 * under --strict the program ends. Not believed to be readable. */
void modules_loaded(const void *cubin, size_t size);

#endif
