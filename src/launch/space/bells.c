#include "bells.h"

#include "base/extremes.h"
#include "base/futex.h"
#include "epoch.h"

#include <stddef.h>

static struct {
	const _Atomic uint64_t *_Atomic openings;
	_Atomic uint32_t *_Atomic rings;
	_Atomic uint64_t heard; /* the last number */
} bells[BELLS];

static atomic_uint bell_count;

/* Meanwhile, a launch may wake the thread of a different bell. */
void bells_set(const struct bell list[], unsigned int count)
{
	unsigned int had = atomic_load(&bell_count), has = min_u64(count, BELLS);

	for (unsigned int i = 0; i < has; i++) {
		if (atomic_load(&bells[i].openings) != list[i].openings)
			atomic_store(&bells[i].heard, 0);
		atomic_store(&bells[i].rings, list[i].rings);
		atomic_store(&bells[i].openings, list[i].openings);
	}
	atomic_store(&bell_count, has);
	if ((had > 0) != (has > 0))
		epoch_raise();
}

bool bells_are_there(void)
{
	return atomic_load(&bell_count) > 0;
}

void bells_ring(void)
{
	unsigned int count = atomic_load(&bell_count);

	for (unsigned int i = 0; i < count; i++) {
		uint64_t number = atomic_load(atomic_load(&bells[i].openings));

		if (number != atomic_load_explicit(&bells[i].heard, memory_order_relaxed)) {
			atomic_store_explicit(&bells[i].heard, number, memory_order_relaxed);
			futex_wake(atomic_load(&bells[i].rings), 1);
		}
	}
}
