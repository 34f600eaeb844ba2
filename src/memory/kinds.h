/*
 * The kinds of memory whose size the calls of the program do not tell (memory.h). Each kind has a file.
 */
#pragma once

#include "account.h"
#include "driver/calls.h"

/* --- mapped.c ----------------------------------------------------------------------------------------------------- */

/*
 * Memory made and mapped by the program itself (cuMemCreate, cuMemMap). The memory lives as long as a handle or a
 * mapping. Imports count for the process that allocated.
 *
 * Any thread. mapped_X is called after the driver's cuMemX has succeeded. mapped_release and mapped_unmap come before
 * the call, since another thread may get the same handle or address at once: they take the handle or the mappings out.
 * mapped_ended comes after the call: the memory is given back, or the handle and the mappings are put back.
 */

/* The bytes are reserved already. */
void mapped_create(const void *handle, struct account *account, uint64_t bytes);
void mapped_retain(const void *handle, const void *address);
void mapped_map(const void *handle, const void *address, size_t bytes);

/* NULL: nothing ends. */
struct mapped_ending;
struct mapped_ending *mapped_release(const void *handle);
struct mapped_ending *mapped_unmap(const void *address, size_t bytes);
void mapped_ended(struct mapped_ending *ending, bool is_done);

void mapped_after_fork(void);

/* --- pools.c ------------------------------------------------------------------------------------------------------ */

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
 * pools_set_account, pools_take and pools_put_back call the driver.
 */

/* The pool of cuMemAllocAsync; NULL if the driver does not tell. */
void *pools_current(const struct account *account);

/* By how much a launch of a graph's instance with allocations of `bytes` may raise the GPU's memory for graphs, in
 * whole pieces; less the memory that all graphs use on the GPU, if the instance was launched before. */
uint64_t pools_asked_by_graph(struct account *account, uint64_t bytes, bool was_launched);

/* An allocation of the bytes is about to happen; false, and nothing is counted, if a limit would be exceeded. */
bool pools_reserve(struct account *account, const void *pool, uint64_t bytes);

/* The allocation has happened or has failed: each pools_reserve needs a pools_settle of the same bytes. With 0 bytes:
 * the pool may have changed. */
void pools_settle(const void *pool, uint64_t bytes);

/* Names the GPU of a new pool. NULL: the memory of the pool is no GPU's, and is not counted. */
void pools_set_account(const void *pool, struct account *account);

/* The driver has given memory of the pool at the address. If no call had named the pool's GPU, as of another GPU's
 * default pool, the pool's account is from here on that of the memory's GPU. */
void pools_learn(const void *pool, CUdeviceptr address);

/* Before the pool is destroyed, since another thread may get the same handle at once. Waits until no thread asks the
 * driver about the pool; from here on, no thread begins to. Returns the account, NULL if nothing is counted; the bytes
 * stay counted. If the driver refuses, pools_put_back. */
struct account *pools_take(const void *pool, uint64_t *bytes);
void pools_put_back(const void *pool, struct account *account, uint64_t bytes);

/* Whether there is a pool; and the program has synchronised: a pool may have given memory back. */
bool pools_exist(void);
void pools_synchronized(void);

/* Counts anew all memory of the GPU's pools and graphs. With `trims`, unused memory is given back before. */
void pools_settle_all(struct account *account, bool trims);

void pools_after_fork(void);

/* --- graph_allocations.c ------------------------------------------------------------------------------------------ */

/*
 * How many bytes the nodes of a graph's instance allocate. Graphs are looked at only once the program has made a node
 * that allocates.
 *
 * Any thread.
 */

/* The program has made a node with an allocation. */
void graph_allocations_expect(void);
bool graph_allocations_exist(void);

/* A call that instantiates has succeeded. */
void graph_allocations_instantiated(const struct call *call);

/* 0: none */
uint64_t graph_allocations_of(CUgraphExec exec, bool *was_launched);

/* The driver has launched the instance. */
void graph_allocations_launched(CUgraphExec exec);

void graph_allocations_after_fork(void);

/* --- overhead.c --------------------------------------------------------------------------------------------------- */

/*
 * The driver's own part of a process's memory on a GPU: contexts, modules, local memory, alignment. By the kernel
 * driver's count of the process, less all memory counted otherwise. The kernel driver counts managed memory only once
 * a kernel has touched the memory: while a process has managed memory, the driver's own part changes by as little as
 * the count allows. Where the kernel driver does not tell: by how much less memory was free after the process's first
 * context on the GPU than before. An allocation by another process at the same moment is taken for the context's.
 *
 * Each question takes the program's time (hardware.md, "Memory"). Without a limit nothing is asked, and the driver's
 * own part stays out of the books: viewers ask the kernel driver themselves (segment_ask_memory_use). Only the first
 * managed allocation asks, since the kernel driver's count may leave managed memory out. The driver's own part ends
 * with the last context on the GPU, unless the process may have contexts that nobody has named.
 *
 * Any thread.
 */

/* With a limit: a call that may make a context on the GPU begins, and has succeeded, on the same thread. */
void overhead_context_begins(struct account *account);
void overhead_context_made(struct account *account);

/* With a limit and without: a context has been made, is retained, or is about to be destroyed. */
void overhead_context_known(CUcontext context, CUdevice device);
void overhead_context_ends(CUcontext context);

/* The process may have contexts from before the library came. */
void overhead_contexts_unknown(void);

/* Memory is about to be reserved: the first time with a limit, or of managed memory, counts what is there already. */
void overhead_reservation_begins(struct account *account, bool is_managed);

/* Counts anew; asks the kernel driver, at most twice a second, or now. False if the kernel driver was asked and did not
 * tell. */
bool overhead_look(struct account *account, bool now);

void overhead_after_fork(void);
