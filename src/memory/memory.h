/*
 * A limit of device memory that holds live, with MPS and without (--memory).
 *
 * How. The driver announces each call that allocates. At its begin, the bytes are reserved on the ledger that all
 * processes with the same limit share (state/ledger.h). If there is no room, the call's arguments are changed so that
 * the driver refuses the call before it does anything, and the program gets CUDA_ERROR_OUT_OF_MEMORY. If the call fails
 * for the driver's own reasons, the bytes are given back at its end. So a call goes the same way however the program
 * has found it, also in a program that we were attached to. A launch costs nothing: no launch allocates but that of a
 * graph with allocations in it.
 *
 * What is counted, by file:
 *   holdings.h           by address or handle: cuMemAlloc, pitch, managed memory by its size, arrays and mipmaps
 *   mapped.h             cuMemCreate: until the last handle and the last mapping is gone
 *   pools.h              pools and graphs: what the driver holds for them
 *   graph_allocations.h  how much a graph's nodes allocate: its launch is refused
 *   overhead.h           what the driver has for itself: contexts, modules, local memory; not while others allocate
 *                        (calls_in_progress.h)
 * Allocations of 2 MiB and more are counted in whole pages of 2 MiB, others in units of 512 bytes, as the driver takes
 * them. What another process has allocated is that one's: imports are not counted. Before a call is refused, dead
 * members' memory is given back, and pools give up what they do not use.
 *
 * What the program sees. cuDeviceTotalMem and the total of cuMemGetInfo are at most the limit, and what is free is at
 * most what is left of the limit. NVML, another library, knows nothing of that.
 *
 * When. The limit is part of the revision in force (state/revisions.h): an edit holds from the next call on. Below what
 * is in use, nothing is taken away.
 *
 * All functions are for the driver's callbacks, and keep errno. Locks are held for a few instructions only, never while
 * the driver is called.
 */
#ifndef NVTASKSET_MEMORY_MEMORY_H
#define NVTASKSET_MEMORY_MEMORY_H

#include "driver/calls.h"
#include "state/segment/segment.h"

#include <stdbool.h>

/* From here on, this segment's limit holds. Only while no thread uses the driver: at the start, and in the child of a
 * fork after memory_after_fork. */
void memory_use(const struct segment *segment);
void memory_after_fork(void);

/* The program may have had contexts before we came: counts what they have, as far as the kernel driver tells. Calls the
 * driver. */
void memory_find_older(void);

bool memory_wants_call(int id);

/* Whether nobody else listens to such a call. */
bool memory_alone_wants_call(int id);

void memory_call_begins(const struct call *call);
void memory_call_ended(const struct call *call);

/* It is about to be destroyed, and its memory with it. */
void memory_context_destroyed(CUcontext context);

#endif
