#include "contexts.h"

#include <stdatomic.h>
#include <stdint.h>

#define PLACES_BITS 8
#define PLACES (1 << PLACES_BITS)
#define PROBES 8

/* The context says which place it is; the GPU comes after it and goes before it, so that whoever finds a context with
 * a GPU has the right one. */
static struct {
	_Atomic(uintptr_t) context; /* 0 where free */
	_Atomic(struct gpu *) gpu;
} places[PLACES];

/* Where the search for a context starts. Fibonacci hashing: contexts are aligned, so their low bits say little. */
static unsigned int first_place(CUcontext context)
{
	return (unsigned int)((uint64_t)(uintptr_t)context * UINT64_C(0x9e3779b97f4a7c15) >> (64 - PLACES_BITS));
}

static struct gpu *gpu_at(unsigned int place, CUcontext context)
{
	struct gpu *gpu = NULL;

	if (atomic_load_explicit(&places[place].context, memory_order_acquire) == (uintptr_t)context)
		gpu = atomic_load_explicit(&places[place].gpu, memory_order_acquire);
	return gpu;
}

struct gpu *contexts_find(CUcontext context)
{
	unsigned int place = first_place(context);
	struct gpu *gpu = NULL;

	for (unsigned int probe = 0; !gpu && probe < PROBES; probe++)
		gpu = gpu_at((place + probe) % PLACES, context);
	return gpu;
}

void contexts_remember(CUcontext context, struct gpu *gpu)
{
	unsigned int place = first_place(context);

	for (unsigned int probe = 0; probe < PROBES; probe++, place = (place + 1) % PLACES) {
		uintptr_t free_place = 0;

		if (atomic_compare_exchange_strong(&places[place].context, &free_place, (uintptr_t)context)) {
			atomic_store_explicit(&places[place].gpu, gpu, memory_order_release);
			break;
		}
	}
}

/* Two threads may have remembered the same context in two places. */
void contexts_forget(CUcontext context)
{
	unsigned int place = first_place(context);

	for (unsigned int probe = 0; probe < PROBES; probe++, place = (place + 1) % PLACES) {
		if (atomic_load_explicit(&places[place].context, memory_order_acquire) == (uintptr_t)context) {
			atomic_store_explicit(&places[place].gpu, NULL, memory_order_release);
			atomic_store_explicit(&places[place].context, 0, memory_order_release);
		}
	}
}
