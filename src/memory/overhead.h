/*
 * The driver's own part of a process's memory on a GPU: contexts, modules, local memory, alignment. By the kernel
 * driver's count of the process, less all memory counted otherwise. The kernel driver counts managed memory only once
 * a kernel has touched the memory: while a process has managed memory, the driver's own part changes by as little as
 * the count allows. Where the kernel driver does not tell, as of clients of MPS: by how much less memory was free after
 * the process's first context on the GPU than before. An allocation by another process at the same moment is taken for
 * the context's.
 *
 * Any thread.
 */
#ifndef NVTASKSET_MEMORY_OVERHEAD_H
#define NVTASKSET_MEMORY_OVERHEAD_H

#include "account.h"

/* A call that may make a context on the GPU begins, and has succeeded, on the same thread. */
void overhead_context_begins(struct account *account);
void overhead_context_made(struct account *account);

/* Counts anew; asks the kernel driver, at most twice a second, or now. False if the kernel driver was asked and did not
 * tell. */
bool overhead_look(struct account *account, bool now);

void overhead_after_fork(void);

#endif
