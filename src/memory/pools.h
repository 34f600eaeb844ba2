/*
 * Memory kept by the driver for the program: in pools (cuMemAllocAsync), and for the allocations of graphs. Counted
 * is all that the driver holds, by its own word, used or not. A pool gives memory back when the program synchronises:
 * the driver is asked again then, and when the number matters.
 *
 * Counted beside are allocations in progress, as far as the pool may have to grow for all of them: threads that
 * allocate at once do not count on the same unused memory. A pool grows by whole pieces, and can exceed the limit by
 * up to one piece.
 *
 * A pool is named by its handle; a GPU's memory for graphs, by the GPU's account. Any thread. All functions but
 * pools_made and pools_forget call the driver.
 */
#ifndef NVTASKSET_MEMORY_POOLS_H
#define NVTASKSET_MEMORY_POOLS_H

#include "account.h"

/* The pool of cuMemAllocAsync; NULL if the driver does not tell. */
void *pools_current(const struct account *account);

/* How much of the bytes allocated by a graph's instance is not in use by an earlier launch of the instance. */
uint64_t pools_asked_by_graph(const struct account *account, uint64_t bytes, bool was_launched);

/* An allocation of the bytes is about to happen; false, and nothing is counted, if a limit would be exceeded. */
bool pools_reserve(struct account *account, const void *pool, uint64_t bytes);

/* The allocation has happened or has failed; or, of 0 bytes, the pool may have changed. */
void pools_settle(const void *pool, uint64_t bytes);

/* A pool of a GPU; NULL: its memory is no GPU's, and is not counted. The pool is gone. */
void pools_made(const void *pool, struct account *account);
void pools_forget(const void *pool);

/* Whether there is a pool; and the program has synchronised: a pool may have given memory back. */
bool pools_exist(void);
void pools_synchronized(void);

/* Counts anew all memory of the GPU's pools and graphs. With `trims`, unused memory is given back before. */
void pools_settle_all(struct account *account, bool trims);

void pools_after_fork(void);

#endif
