/*
 * Memory kept by the driver for the program: in pools (cuMemAllocAsync), and for the allocations of graphs. Counted
 * is all that the driver holds, by its own word, used or not. A pool gives memory back when the program synchronises,
 * without a call of its own: the driver is asked again when the number matters.
 *
 * Before an allocation, the possible growth of the pool is reserved; afterwards, the real growth is counted. A pool
 * grows by whole pieces, and can exceed the limit by up to one piece.
 *
 * Any thread. All functions call the driver.
 */
#ifndef NVTASKSET_MEMORY_POOLS_H
#define NVTASKSET_MEMORY_POOLS_H

#include "account.h"

/* How much a pool may grow by for an allocation of these bytes. NULL stands for the device's current pool, and is
 * replaced. */
uint64_t pools_growth(struct account *account, void **pool, uint64_t bytes);

/* Counts all that the pool holds now; `reserved` was for the growth. */
void pools_settle(struct account *account, void *pool, uint64_t reserved);

/* The pool is gone. */
void pools_forget(void *pool);

/* The same for graphs: an instance with allocations of these bytes is about to run, or has begun to. */
uint64_t pools_growth_of_graph(struct account *account, uint64_t bytes);
void pools_settle_graphs(struct account *account, uint64_t reserved);

/* Counts anew all memory of the GPU's pools and graphs. With `trims`, unused memory is given back before. */
void pools_settle_all(struct account *account, bool trims);

void pools_after_fork(void);

#endif
