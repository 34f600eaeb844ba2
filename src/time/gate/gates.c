#include "gates.h"

#include "base/clock.h"
#include "driver/gpus.h"

#include <string.h>

struct gate_state gate_state = {.spent_at = UINT64_MAX};

static struct gate gates[GPUS_MAX]; /* by gpus_number */

struct gate *gates_of(const struct gpu *gpu)
{
	struct gate *gate = &gates[gpu->number];

	return atomic_load_explicit(&gate->gpu, memory_order_acquire) ? gate : NULL;
}

struct gate *gates_make(const struct gpu *gpu)
{
	atomic_store_explicit(&gates[gpu->number].gpu, gpu, memory_order_release);
	return &gates[gpu->number];
}

#define LOCK_TRIES 1000

bool gate_lock_soon(struct gate *gate, long pause_us)
{
	bool has = gate_lock(gate);

	for (unsigned int tries = 0; !has && tries < LOCK_TRIES; tries++) {
		if (pause_us > 0)
			clock_pause_us(pause_us);
		has = gate_lock(gate);
	}
	return has;
}

void gates_open(const struct gpu *gpu)
{
	struct gate *gate = gates_make(gpu);

	if (gate_lock(gate)) {
		claims_see_own(&gate->claims, gpu->pci, true);
		gate_unlock(gate);
	}
}

/* A gate stays made: the handler of a signal may have forked in a launch's wait, and the child goes on there. */
void gates_after_fork(void)
{
	for (unsigned int i = 0; i < GPUS_MAX; i++) {
		const struct gpu *gpu = gates[i].gpu;

		if (gpu) {
			memset(&gates[i], 0, sizeof gates[i]);
			gates[i].gpu = gpu;
		}
	}
	gate_state = (struct gate_state){.spent_at = UINT64_MAX};
}
