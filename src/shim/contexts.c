#include "contexts.h"

#define PROBES 8

struct contexts_place contexts_places[CONTEXTS_PLACES];

struct gpu *contexts_find_further(CUcontext context)
{
	unsigned int place = contexts_first_place(context);
	struct gpu *gpu = NULL;

	for (unsigned int probe = 1; !gpu && probe < PROBES; probe++)
		gpu = contexts_gpu_at((place + probe) % CONTEXTS_PLACES, context);
	return gpu;
}

void contexts_remember(CUcontext context, struct gpu *gpu)
{
	unsigned int place = contexts_first_place(context);

	for (unsigned int probe = 0; probe < PROBES; probe++, place = (place + 1) % CONTEXTS_PLACES) {
		uintptr_t free_place = 0;

		if (atomic_compare_exchange_strong(&contexts_places[place].context, &free_place, (uintptr_t)context)) {
			atomic_store_explicit(&contexts_places[place].gpu, gpu, memory_order_release);
			break;
		}
	}
}

/* Two threads may have remembered the same context in two places. */
void contexts_forget(CUcontext context)
{
	unsigned int place = contexts_first_place(context);

	for (unsigned int probe = 0; probe < PROBES; probe++, place = (place + 1) % CONTEXTS_PLACES) {
		if (atomic_load_explicit(&contexts_places[place].context, memory_order_acquire) == (uintptr_t)context) {
			atomic_store_explicit(&contexts_places[place].gpu, NULL, memory_order_release);
			atomic_store_explicit(&contexts_places[place].context, 0, memory_order_release);
		}
	}
}
