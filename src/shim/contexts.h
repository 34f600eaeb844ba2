/*
 * Which GPU a context belongs to: a table that any thread reads and writes without waiting.
 *
 * It remembers as many contexts as it has room for; one that is not found is asked for again, at the cost
 * of two driver calls. Used from the launch path.
 */
#ifndef NVTASKSET_SHIM_CONTEXTS_H
#define NVTASKSET_SHIM_CONTEXTS_H

#include "cuda.h"

#include <stdatomic.h>
#include <stdint.h>

struct gpu;

#define CONTEXTS_PLACES 256 /* a power of two */

/* The context says which place it is; the GPU comes after it and goes before it, so that whoever finds a context with
 * a GPU has the right one. */
struct contexts_place {
	_Atomic(uintptr_t) context; /* 0 where free */
	_Atomic(struct gpu *) gpu;
};

extern struct contexts_place contexts_places[CONTEXTS_PLACES];

/* Where the search for a context starts. Fibonacci hashing: contexts are aligned, so their low bits say little. */
static inline unsigned int contexts_first_place(CUcontext context)
{
	return (unsigned int)((uint64_t)(uintptr_t)context * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static inline struct gpu *contexts_gpu_at(unsigned int place, CUcontext context)
{
	const struct contexts_place *at = &contexts_places[place];
	struct gpu *gpu = NULL;

	if (atomic_load_explicit(&at->context, memory_order_acquire) == (uintptr_t)context)
		gpu = atomic_load_explicit(&at->gpu, memory_order_acquire);
	return gpu;
}

struct gpu *contexts_find_further(CUcontext context);

/* NULL where it is not known. */
static inline struct gpu *contexts_find(CUcontext context)
{
	struct gpu *gpu = contexts_gpu_at(contexts_first_place(context), context);

	return __builtin_expect(!gpu, 0) ? contexts_find_further(context) : gpu;
}

void contexts_remember(CUcontext context, struct gpu *gpu);
void contexts_forget(CUcontext context);

#endif
