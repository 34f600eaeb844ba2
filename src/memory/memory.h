/*
 * A limit of device memory that holds live, with MPS and without (--memory).
 *
 * How. The driver announces each call that allocates. At the begin, the bytes are reserved on the ledger, which is
 * shared by all processes with the same limit (state/ledger.h). If there is no room, the call's arguments are
 * changed: the driver refuses the call before doing anything, and the program gets CUDA_ERROR_OUT_OF_MEMORY. If the
 * call fails for the driver's own reasons, the bytes are given back at the end. Therefore it does not matter how the
 * program has found the call, or whether the library was there from the start. A launch costs nothing: only the
 * launch of a graph with allocations in it allocates.
 *
 * Counted, by file:
 *   holdings.c           by address or handle: cuMemAlloc, pitch, managed memory by its size, arrays and mipmaps
 *   mapped.c             cuMemCreate: until the last handle and the last mapping is gone
 *   pools.c              pools and graphs: all that the driver holds for them
 *   graph_allocations.c  how much a graph's nodes allocate: the launch is refused
 *   overhead.c           with a limit, the driver's own: contexts, modules, local memory; not while a thread
 *                        allocates (calls_in_progress.h)
 * Allocations of 2 MiB and more are counted in whole pages of 2 MiB, smaller ones in units of 512 bytes, as by the
 * driver. Imports count for the process that allocated. Before a call is refused, dead members' memory is given back,
 * and pools give up unused memory.
 *
 * Programs see the limit: cuDeviceTotalMem and the total of cuMemGetInfo are at most the limit, and the free memory
 * is at most the rest of the limit. NVML, another library, is not changed.
 *
 * When. The limit is part of the revision in force (state/revisions.h): an edit holds from the next call on. Nothing
 * in use is taken away.
 *
 * All functions are for the driver's callbacks, and keep errno. Locks are held for a few instructions only, never
 * while the driver is called.
 */
#pragma once

#include "driver/calls.h"
#include "state/segment/segment.h"

/* From here on, the limit is of this segment. Only while no thread uses the driver: at the start, and in the child
 * of a fork after memory_after_fork. */
void memory_use(const struct segment *segment);
void memory_after_fork(void);

/* The program may have had contexts before the library came: counts their memory, as far as the kernel driver tells.
 * Calls the driver. */
void memory_find_older(void);

/* memory_may_want_call: whether the driver must announce a call. memory_wants_call: whether to handle an announced
 * call, as the limit is now. */
bool memory_wants_call(int id);
bool memory_may_want_call(int id);

void memory_call_begins(const struct call *call);
void memory_call_ended(const struct call *call);

/* Before a context is destroyed, and its memory with it. */
void memory_context_destroyed(CUcontext context);
