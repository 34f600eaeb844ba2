#include "streams.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STREAMS 64
#define LAUNCHED UINT64_C(1) /* something was launched into it since; no stream's number has this bit */

static _Atomic uint64_t streams[STREAMS]; /* their numbers; 0: free */
_Atomic uint64_t streams_waiting;

static uint64_t number_of(CUstream stream)
{
	return ((uint64_t)(uintptr_t)stream + 1) << 1;
}

/* One that has this number, or takes it; NULL if there is none. */
static _Atomic uint64_t *find(uint64_t number, bool takes)
{
	_Atomic uint64_t *found = NULL;

	for (int i = 0; i < STREAMS && !found; i++)
		found = (atomic_load(&streams[i]) & ~LAUNCHED) == number ? &streams[i] : NULL;
	for (int i = 0; i < STREAMS && !found && takes; i++) {
		uint64_t nobody = 0;

		found = atomic_compare_exchange_strong(&streams[i], &nobody, number) ? &streams[i] : NULL;
	}
	return found;
}

/* One for which there is no place is taken for all: all wait from here on. */
void streams_wait(CUstream stream)
{
	uint64_t number = number_of(stream);
	_Atomic uint64_t *place = find(number, true);

	if (!place) {
		atomic_fetch_or(&streams_waiting, STREAMS_LOST);
		return;
	}
	atomic_store(place, number);
	atomic_fetch_add(&streams_waiting, 1);
}

bool streams_look(CUstream stream, bool is_idle)
{
	uint64_t number = number_of(stream), launched = number | LAUNCHED;
	_Atomic uint64_t *place = find(number, false);

	if (place && is_idle && atomic_compare_exchange_strong(place, &launched, 0))
		place = NULL;
	return place || atomic_load(&streams_waiting) >= STREAMS_LOST;
}

void streams_launched(CUstream stream)
{
	uint64_t number = number_of(stream);
	_Atomic uint64_t *place = atomic_load_explicit(&streams_waiting, memory_order_relaxed) > 0 ? find(number, false) : NULL;

	if (place)
		atomic_compare_exchange_strong(place, &number, number | LAUNCHED);
}

void streams_forget(void)
{
	memset(streams, 0, sizeof streams);
	atomic_store(&streams_waiting, 0);
}
