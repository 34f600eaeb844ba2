/*
 * Memory that the driver keeps for the program: in pools (cuMemAllocAsync), and for the allocations of graphs. Counted
 * is what the driver holds, by its own word, and not what the program has of that. A pool gives memory back when the
 * program synchronises; nobody announces that, so the driver is asked again when it matters.
 *
 * Before an allocation, what the pool may have to grow by is reserved; afterwards, what the pool has grown by is
 * counted. A pool grows by whole pieces, so by up to one piece it can exceed the limit.
 *
 * Any thread. All functions call the driver.
 */
#ifndef NVTASKSET_MEMORY_POOLS_H
#define NVTASKSET_MEMORY_POOLS_H

#include "account.h"

/* How much a pool may grow by for an allocation of so many bytes. NULL is the device's current pool, and becomes that.
 * */
uint64_t pools_growth(struct account *account, void **pool, uint64_t bytes);

/* Counts what the pool holds now; `reserved` was for that. */
void pools_settle(struct account *account, void *pool, uint64_t reserved);

/* The pool is gone. */
void pools_forget(void *pool);

/* The same for graphs: an instance whose nodes allocate so many bytes is about to run, or has begun to. */
uint64_t pools_growth_of_graph(struct account *account, uint64_t bytes);
void pools_settle_graphs(struct account *account, uint64_t reserved);

/* Counts anew what all pools and graphs of the GPU hold. With `trims`, they first give back what the program does not
 * use. */
void pools_settle_all(struct account *account, bool trims);

void pools_after_fork(void);

#endif
